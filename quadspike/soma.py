"""Normalisation, residual and neuron as one module: what follows every synapse."""

from __future__ import annotations

from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from quadspike import ops
from quadspike.call import Call, Timed
from quadspike.errors import QuadspikeError, check_count, check_name
from quadspike.neurons import Neuron, create_neuron
from quadspike.neurons.base import check_sequence, check_state
from quadspike.norms import BatchNorm, create_norm
from quadspike.state import State


class Soma(Timed):
    """`o = neuron(norm(x))`, with a residual before or after the neuron.

    - `residual="before"` (sum-then-fire): `o = neuron(norm(x) + residual)`;
    - `residual="after"` (fire-then-sum): `neuron(norm(x)) + residual`, an integer-valued
      activation rather than a spike.

    The neuron given is copied. `timesteps` is for neurons and norms with parameters of each
    step. On its own a soma takes `[T, B, C, ...]`; inside a network a
    `Call` carries the time axis and activations are `[T*B, C, ...]`.

    >>> import torch
    >>> soma = Soma(8, neuron="qif", norm="tdbn")
    >>> soma(torch.randn(4, 2, 8, 5, 5)).shape
    torch.Size([4, 2, 8, 5, 5])
    """

    norm: BatchNorm | None

    def __init__(
        self,
        channels: int,
        neuron: str | dict[str, Any] | Neuron = "qif",
        norm: str | None = "tdbn",
        residual: str | None = None,
        eta: float = 1.0,
        backend: str = "auto",
        timesteps: int | None = None,
    ) -> None:
        super().__init__()
        if residual is not None:
            check_name("residual place", residual, ("before", "after"))
        self.channels = check_count("channels", channels)
        self.residual = residual
        self.neuron = create_neuron(neuron)
        self.neuron.fit(channels, timesteps)
        self.neuron.check_channels(channels)
        if norm is None:
            self.norm = None
        else:
            self.norm = create_norm(norm, channels, self.neuron.threshold, eta, timesteps)
        self.backend = ops.check_backend(backend)
        self.initial_u: nn.Parameter | None
        self.register_parameter("initial_u", None)

    def forward(
        self, x: Tensor, call: Call | None = None, residual: Tensor | None = None
    ) -> Tensor:
        if call is None:
            return self._standalone(x, residual)
        self._check(x, residual, call)
        label, taps = call.visit(self), call.taps_for(self)
        state = call.states.get(label) if call.states is not None else None
        self._check_time(call, state)
        if state is not None:
            check_state(state, (call.batch, *x.shape[1:]), label)
        elif self.initial_u is not None:
            state = self._start(self.initial_u, x, call, label)
        result = ops.soma(
            x,
            self.neuron,
            steps=call.timesteps,
            batch=call.batch,
            norm=self.norm,
            residual=residual,
            place="after" if self.residual == "after" else "before",
            state=state,
            taps=taps.without("output") if taps else None,
            keep_state=call.states is not None,
            backend=self.backend,
            key=call.key,
            label=label,
        )
        if result.seen:
            call.record(label, **result.seen)
        if taps and "output" in taps.kinds:
            call.record(label, output=call.unflatten(result.out))
        if call.states is not None and result.state is not None:
            call.states[label] = result.state
        return result.out

    def start_from(self, initial_u: Tensor) -> None:
        """Begin every call from this membrane `[C, ...]`, alike for all samples, and learn it."""
        if initial_u.shape[:1] != (self.channels,):
            raise QuadspikeError(
                f"an initial membrane for {self.channels} channels is [{self.channels}, ...], "
                f"got {tuple(initial_u.shape)}"
            )
        self.initial_u = nn.Parameter(initial_u.detach().clone())

    def explain(
        self, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> ops.Choice:
        """Who computes this layer, and why: for tensors where the layer is and of its type.

        `device` and `dtype` ask about others, or for a layer without parameters.
        """
        mine = next(chain(self.parameters(), self.buffers()), torch.empty(0))
        where = mine.device if device is None else torch.device(device)
        return ops.choose(self.backend, self.neuron, where, dtype or mine.dtype, self.norm)

    def _start(self, initial_u: Tensor, x: Tensor, call: Call, label: str) -> State:
        if initial_u.shape != x.shape[1:]:
            raise QuadspikeError(
                f"layer {label!r} learned its initial membrane for {tuple(initial_u.shape)}, got "
                f"input {tuple(x.shape)}; such a network is for one size of image only"
            )
        rest = torch.zeros_like(x[: call.batch], dtype=ops.compute_dtype(x))  # in x's layout
        return State(rest + initial_u, rest, 0)

    def _standalone(self, x: Tensor, residual: Tensor | None) -> Tensor:
        check_sequence(x)
        if x.ndim < 3 or x.shape[2] != self.channels:
            raise QuadspikeError(
                f"a soma for {self.channels} channels takes [T, B, {self.channels}, ...] on its "
                f"own, got {tuple(x.shape)}; inside a network give it the call: soma(x, call)"
            )
        if residual is not None and residual.shape != x.shape:
            raise QuadspikeError(
                f"the residual {tuple(residual.shape)} does not fit the input {tuple(x.shape)}"
            )
        flat = x.reshape(-1, *x.shape[2:])
        flat_residual = None if residual is None else residual.reshape(-1, *residual.shape[2:])
        call = Call(x.shape[0], x.shape[1])
        return self.forward(flat, call, flat_residual).view(x.shape)

    def _check_time(self, call: Call, state: State | None) -> None:
        if call.states is not None:
            self.neuron.check_streams()
        if self.norm is not None:
            self.norm.check_steps(call.timesteps + (state.step if state else 0))

    def _check(self, x: Tensor, residual: Tensor | None, call: Call) -> None:
        if not isinstance(call, Call):
            raise QuadspikeError(
                f"a soma's second argument is the network's Call, got {type(call).__name__}; "
                "give a residual by name: soma(x, residual=...)"
            )
        if not x.is_floating_point():
            raise QuadspikeError(
                f"layer {call.name(self)!r} takes a floating tensor, got {x.dtype}"
            )
        if x.ndim < 2 or x.shape[1] != self.channels:
            raise QuadspikeError(
                f"layer {call.name(self)!r} is for {self.channels} channels, got {tuple(x.shape)}"
            )
        if (residual is not None) != (self.residual is not None):
            expected = f"residual={self.residual!r}" if self.residual else "no residual"
            given = "one" if residual is not None else "none"
            raise QuadspikeError(f"layer {call.name(self)!r} was made with {expected}, got {given}")
        rows = (call.batch, call.batch * call.timesteps)
        if x.shape[0] not in rows:
            raise QuadspikeError(
                f"layer {call.name(self)!r} takes one step or all: [{call.batch}, ...] or "
                f"[{call.timesteps} * {call.batch}, ...] in this call, got {tuple(x.shape)}"
            )
        if residual is not None and (
            residual.shape[1:] != x.shape[1:] or residual.shape[0] not in rows
        ):
            raise QuadspikeError(
                f"layer {call.name(self)!r}: residual {tuple(residual.shape)} does not fit "
                f"input {tuple(x.shape)}"
            )

    def extra_repr(self) -> str:
        return f"{self.channels}, residual={self.residual!r}, backend={self.backend!r}"
