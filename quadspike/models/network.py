"""The one network class: a chain of synapses and somas that knows about time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, cast, get_args, overload

import torch
from torch import Tensor, nn

from quadspike.call import Call, Timed
from quadspike.errors import QuadspikeError, check_count, check_name, not_floating
from quadspike.models.chain import Chain, run_in_order
from quadspike.randomness import Key
from quadspike.soma import Soma
from quadspike.state import State
from quadspike.taps import Seen, Taps

Readout = Literal["mean", "last"]
_RANKS: dict[type[nn.Module], int] = {nn.Linear: 2, nn.Conv1d: 3, nn.Conv2d: 4}
_SHAPES = {2: "B, features", 3: "B, C, L", 4: "B, C, H, W"}


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
        _check_inside(self, self, "")
        self.input_rank = self._guess_rank() if input_rank is None else input_rank
        if self.input_rank not in _SHAPES:
            raise QuadspikeError(f"input_rank must be one of {list(_SHAPES)}, got {input_rank!r}")
        self.config: dict[str, Any] | None = None

    def __getitem__(self, idx: slice | int) -> nn.Sequential | nn.Module:
        """A layer, or of a slice a network with this one's steps and readout."""
        if not isinstance(idx, slice):
            return super().__getitem__(idx)
        begins = idx.indices(len(self))[0] == 0
        part = Network(
            OrderedDict(list(self._modules.items())[idx]),
            timesteps=self.timesteps,
            readout=self.readout,
            input_rank=self.input_rank if begins else None,
        )
        part.training = self.training
        return part

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
        if call.taps is None:
            return logits
        if not call.seen:
            names = ", ".join(self.somas())
            raise QuadspikeError(f"no layer matches {call.taps.layers!r}; the somas are: {names}")
        return logits, call.seen

    def run(self, x: Tensor, states: dict[str, State]) -> tuple[Tensor, dict[str, State]]:
        """Logits for one frame or a chunk of them, going on from `states`, and the new states.

        `{}` starts from rest; `deploy.stream` keeps the states for you.
        """
        call, flat = self._enter(x, 1 if x.ndim == self.input_rank else None)
        call.states = dict(states)
        return self._run(flat, call), call.states

    def predict(self, logits: Tensor) -> Tensor:
        """Class scores `[B, classes]` from the logits of every step, as `readout` says."""
        readout = check_name("readout", self.readout, get_args(Readout))
        if not isinstance(logits, Tensor) or logits.ndim < 3:
            given = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
            raise QuadspikeError(
                f"predict takes the logits of every step, [T, B, classes], got {given}"
            )
        return logits.mean(0) if readout == "mean" else logits[-1]

    def somas(self) -> dict[str, Soma]:
        """Every soma by name, in order."""
        return {name: module for name, module in self.named_modules() if isinstance(module, Soma)}

    def explain(
        self, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> list[LayerExplanation]:
        """What each soma runs when called, and why: where the network is, or on another device or
        type. `torch.export` takes the reference where the backend is "auto".
        """
        mine = next(self.parameters(), torch.empty(0))
        device = mine.device if device is None else device
        dtype = mine.dtype if dtype is None else dtype
        return [
            LayerExplanation(
                name,
                soma.neuron.name,
                soma.norm.name if soma.norm else "none",
                str(soma.neuron.surrogate),
                soma.residual or "none",
                *soma.explain(device, dtype),
            )
            for name, soma in self.somas().items()
        ]

    def _run(self, flat: Tensor, call: Call) -> Tensor:
        out = run_in_order(self, flat, call, None)
        call.visits.clear()  # what a checkpoint runs again in the backward has its first name
        return call.unflatten(out)

    def _enter(self, x: Tensor, timesteps: int | None) -> tuple[Call, Tensor]:
        """Check the input and lay it out: `[T*B, ...]`, or `[B, ...]` if it is static."""
        static, sequence = _SHAPES[self.input_rank], f"T, {_SHAPES[self.input_rank]}"
        if given := not_floating(x):
            raise QuadspikeError(f"the network takes a floating tensor, got {given}")
        if x.ndim not in (self.input_rank, self.input_rank + 1):
            raise QuadspikeError(
                f"the network takes [{static}] or [{sequence}], got {tuple(x.shape)}"
            )
        if 0 in x.shape:
            raise QuadspikeError(f"the input has an empty axis: {tuple(x.shape)}")
        names = {module: name for name, module in self.named_modules()}
        if x.ndim == self.input_rank:
            steps = check_count("timesteps", self.timesteps if timesteps is None else timesteps)
            call = Call(steps, x.shape[0], names)
        else:
            if timesteps not in (None, x.shape[0]):
                raise QuadspikeError(
                    f"a sequence of {x.shape[0]} steps was given with timesteps={timesteps}; "
                    "timesteps is for static inputs"
                )
            call = Call(x.shape[0], x.shape[1], names)
            x = x.reshape(-1, *x.shape[2:])
        self._check_first(x)
        return call, x.contiguous(memory_format=torch.channels_last) if x.ndim == 4 else x

    def _check_first(self, x: Tensor) -> None:
        """Refuse what the first synapse cannot take, before torch does in terms of matrices."""
        first = _first_layer(self)
        wanted = getattr(first, "in_channels", None)
        if wanted is None and self.input_rank == 2:
            wanted = getattr(first, "in_features", None)
        if wanted and x.shape[1] != wanted:  # 0 of a lazy one, which takes any
            raise QuadspikeError(
                f"the network takes {wanted} input channels, got {x.shape[1]} in {tuple(x.shape)}"
            )
        if type(first) in _RANKS:
            mine = cast("Tensor", first.weight).dtype  # type: ignore[union-attr]
            # Between the other types autocast and the like may convert.
            if mine != x.dtype and torch.float64 in (mine, x.dtype):
                raise QuadspikeError(
                    f"the network's weights are {mine}, got an input of {x.dtype}; "
                    f"use x.to({mine}), or model.to({x.dtype})"
                )

    def _guess_rank(self) -> int:
        first = _first_layer(self)
        for kind, rank in _RANKS.items():
            if isinstance(first, kind):
                return rank
        raise QuadspikeError(
            "cannot tell the input's shape from the first layer; say input_rank=4 for images "
            "[B, C, H, W] or input_rank=2 for vectors [B, features]"
        )


def _check_inside(caller: nn.Module, module: nn.Module, name: str) -> None:
    """Refuse what needs the call in `module` and is not given it by `caller`, which runs it."""
    for label, child in module.named_children():
        where = f"{name}.{label}".lstrip(".")
        if isinstance(child, Network):
            raise QuadspikeError(f"{where}: a Network inside a Network; make it a Chain")
        if isinstance(child, Timed) and not isinstance(caller, Timed | nn.Sequential):
            raise QuadspikeError(
                f"{where} needs to know about time, but {type(caller).__name__} around it cannot "
                "tell it; derive that from quadspike.Timed and give it forward(self, x, call)"
            )
        listed = isinstance(child, nn.ModuleList | nn.ModuleDict)
        if listed and isinstance(caller, nn.Sequential):
            raise QuadspikeError(
                f"{where}: a chain cannot run a {type(child).__name__}; make it a Chain"
            )
        # A list runs nothing itself: what holds it does.
        _check_inside(caller if listed else child, child, where)


def _first_layer(module: nn.Module) -> nn.Module | None:
    """What the input meets first, inside however many chains."""
    while isinstance(module, nn.Sequential):
        if not len(module):
            return None
        module = module[0]
    return module
