"""The one network class: a chain of synapses and somas that knows about time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, cast, get_args, overload

import torch
from torch import Tensor, nn

from quadspike.call import Call, Timed
from quadspike.errors import QuadspikeError, check_count, check_name
from quadspike.randomness import Key, fresh_key, uniform
from quadspike.soma import Soma
from quadspike.state import State
from quadspike.taps import Seen, Taps

Readout = Literal["mean", "last"]
_RANKS: dict[type[nn.Module], int] = {nn.Linear: 2, nn.Conv1d: 3, nn.Conv2d: 4}
_SHAPES = {2: "B, features", 3: "B, C, L", 4: "B, C, H, W"}


class Chain(nn.Sequential, Timed):
    """`nn.Sequential` whose timed members also receive the call.

    A residual given to the chain enters its last soma.
    """

    def forward(  # type: ignore[override]
        self, x: Tensor, call: Call, residual: Tensor | None = None
    ) -> Tensor:
        last = len(self) - 1
        for index, module in enumerate(self):
            if isinstance(module, Soma):
                x = module(x, call, residual if index == last else None)
            elif isinstance(module, Timed):
                x = module(x, call)
            else:
                x = module(x)
        return x


class Dropout(Timed):
    """Dropout whose mask is a function of the call's key and the layer, one for all steps."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise QuadspikeError(f"dropout needs 0 <= p < 1, got {p}")
        self.p = p

    def forward(self, x: Tensor, call: Call) -> Tensor:
        if not self.training or self.p == 0:
            return x
        if call.key is None:
            call.key = fresh_key()
        draws = uniform((call.batch, *x.shape[1:]), call.key, call.name(self), x.device)
        mask = (draws >= self.p).to(x.dtype) / (1 - self.p)
        return (x.view(-1, *mask.shape) * mask).view(x.shape)

    def extra_repr(self) -> str:
        return f"p={self.p}"


class LayerExplanation(NamedTuple):
    """What one soma runs, and why."""

    layer: str
    neuron: str
    norm: str
    surrogate: str
    residual: str
    backend: str
    reason: str


class Network(Chain):
    """Layers in order, run over time; returns the logits of every step, `[T, B, classes]`.

    A static input, `[B, C, H, W]`, is shown at each of `timesteps` steps: what comes before
    the first soma runs once. A sequence is `[T, B, C, H, W]`, of any length. `readout` says
    how the logits are read: their mean over time, or the last step's.

    >>> net = Network(
    ...     nn.Conv2d(1, 8, 3, padding=1, bias=False), Soma(8),
    ...     nn.AvgPool2d(2), nn.Flatten(), nn.Linear(8 * 16, 10),
    ...     timesteps=4,
    ... )
    >>> net(torch.randn(2, 1, 8, 8)).shape
    torch.Size([4, 2, 10])
    """

    def __init__(
        self,
        *layers: nn.Module | OrderedDict[str, nn.Module],
        timesteps: int = 4,
        readout: Readout = "mean",
        input_rank: int | None = None,
    ) -> None:
        if len(layers) == 1 and isinstance(layers[0], OrderedDict):
            super().__init__(layers[0])
        else:
            super().__init__(*cast("tuple[nn.Module, ...]", layers))
        check_name("readout", readout, get_args(Readout))
        self.timesteps = check_count("timesteps", timesteps)
        self.readout: Readout = readout
        self.input_rank = input_rank or self._guess_rank()
        self.config: dict[str, Any] | None = None

    @overload  # type: ignore[override]
    def forward(
        self, x: Tensor, taps: None = None, key: Key | None = None, timesteps: int | None = None
    ) -> Tensor: ...

    @overload
    def forward(
        self,
        x: Tensor,
        taps: Taps | str | Sequence[str],
        key: Key | None = None,
        timesteps: int | None = None,
    ) -> tuple[Tensor, Seen]: ...

    def forward(
        self,
        x: Tensor,
        taps: Taps | str | Sequence[str] | None = None,
        key: Key | None = None,
        timesteps: int | None = None,
    ) -> Tensor | tuple[Tensor, Seen]:
        """Logits `[T, B, classes]`; with `taps`, also what they saw, by layer name.

        `key` is what random layers draw from; without one they follow `torch.manual_seed`.
        """
        call, flat = self._enter(x, timesteps)
        call.key = key
        call.taps = None if taps is None else Taps.of(taps)
        logits = self._run(flat, call)
        return logits if taps is None else (logits, call.seen)

    def advance(self, x: Tensor, states: dict[str, State]) -> Tensor:
        """Go on from `states`, which are updated; `x` is one frame or a chunk of them."""
        call, flat = self._enter(x, 1)
        call.states = states
        return self._run(flat, call)

    def predict(self, logits: Tensor) -> Tensor:
        """Class scores `[B, classes]` from the logits of every step, as `readout` says."""
        return logits.mean(0) if self.readout == "mean" else logits[-1]

    def somas(self) -> dict[str, Soma]:
        """Every soma by name, in order."""
        return {name: module for name, module in self.named_modules() if isinstance(module, Soma)}

    def explain(self) -> list[LayerExplanation]:
        """What each soma runs, and why."""
        return [
            LayerExplanation(
                name,
                soma.neuron.name,
                soma.norm.name if soma.norm else "none",
                str(soma.neuron.surrogate),
                soma.residual or "none",
                *soma.explain(),
            )
            for name, soma in self.somas().items()
        ]

    def _run(self, flat: Tensor, call: Call) -> Tensor:
        return call.unflatten(super().forward(flat, call))

    def _enter(self, x: Tensor, timesteps: int | None) -> tuple[Call, Tensor]:
        """Check the input and lay it out: `[T*B, ...]`, or `[B, ...]` if it is static."""
        static, sequence = _SHAPES[self.input_rank], f"T, {_SHAPES[self.input_rank]}"
        if not isinstance(x, Tensor) or not x.is_floating_point():
            kind = x.dtype if isinstance(x, Tensor) else type(x).__name__
            raise QuadspikeError(f"the network takes a floating tensor, got {kind}; use .float()")
        if x.ndim not in (self.input_rank, self.input_rank + 1):
            raise QuadspikeError(
                f"the network takes [{static}] or [{sequence}], got {tuple(x.shape)}"
            )
        if 0 in x.shape:
            raise QuadspikeError(f"the input has an empty axis: {tuple(x.shape)}")
        names = {module: name for name, module in self.named_modules()}
        if x.ndim == self.input_rank:
            steps = self.timesteps if timesteps is None else check_count("timesteps", timesteps)
            call = Call(steps, x.shape[0], names)
        else:
            call = Call(x.shape[0], x.shape[1], names)
            x = x.reshape(-1, *x.shape[2:])
        self._check_channels(x)
        return call, x.contiguous(memory_format=torch.channels_last) if x.ndim == 4 else x

    def _check_channels(self, x: Tensor) -> None:
        first = self._first_synapse()
        channels = getattr(first, "in_channels", None)
        if channels is not None and x.shape[1] != channels:
            raise QuadspikeError(
                f"the network takes {channels} input channels, got {x.shape[1]} in {tuple(x.shape)}"
            )

    def _first_synapse(self) -> nn.Module | None:
        return next((m for m in self.modules() if isinstance(m, tuple(_RANKS))), None)

    def _guess_rank(self) -> int:
        first = self._first_synapse()
        leads_with_flatten = isinstance(next(iter(self), None), nn.Flatten)
        if first is None or (leads_with_flatten and isinstance(first, nn.Linear)):
            raise QuadspikeError(
                "cannot tell the input's shape from the layers; say input_rank=4 for images "
                "[B, C, H, W] or input_rank=2 for vectors [B, features]"
            )
        return _RANKS[type(first)]
