"""The arguments of the fused soma's operators, once for both directions."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

KINDS = "nlcs"
"""A constant is a number, a tensor for the layer, for each channel, or for each step and channel;
its place here is the code the kernels know it by."""


class Arguments(NamedTuple):
    """What `quadspike::soma` takes, in order; `SCHEMA` says the same to torch."""

    x: Tensor
    residual: Tensor | None
    scale: Tensor | None
    """`[1 or T, C]`: the scale, or the norm's weight."""
    shift: Tensor | None
    gain: Tensor | None
    running_mean: Tensor | None
    running_var: Tensor | None
    initial_u: Tensor | None
    initial_o: Tensor | None
    start: Tensor | None
    """Of the surrogate's draws, as `Draws` has it; None where nothing is drawn."""
    constants: list[Tensor]
    """The neuron's, then the surrogate's, that are tensors."""
    numbers: list[float]
    kinds: str
    """One letter of `KINDS` a constant, the neuron's and the surrogate's apart by `|`."""
    equation: str
    mode: str
    """Scale and shift from "none", "given", or a norm's "batch" or "running" statistics."""
    place: str
    steps: int
    batch: int
    keep: int
    """Membranes to return: none, the last or all."""
    mean: bool
    """Whether to return the mean membrane of every step."""
    emit: torch.dtype | None
    """The output's type; None for membranes alone."""
    gain_number: float
    eps: float
    counter: int
    """Of the first step's draws."""
    samples: int
    sync: bool
    detach_reset: bool
    backend: str
    """Who computes: "triton" or "vectorised"."""

    @property
    def places(self) -> int:
        """Membranes of one step."""
        return self.batch * self.x[0].numel()

    @property
    def out_steps(self) -> int:
        return self.steps if self.emit else 0

    @property
    def x_steps(self) -> int:
        return self.x.shape[0] // self.batch

    @property
    def residual_steps(self) -> int:
        return 0 if self.residual is None else self.residual.shape[0] // self.batch

    @property
    def affine_steps(self) -> int:
        return 0 if self.scale is None else self.scale.shape[0]

    @property
    def p_kinds(self) -> tuple[int, ...]:
        return tuple(map(KINDS.index, self.kinds.split("|")[0]))

    @property
    def s_kinds(self) -> tuple[int, ...]:
        return tuple(map(KINDS.index, self.kinds.split("|")[1]))

    def values(self) -> tuple[tuple[Tensor | float, ...], tuple[Tensor | float, ...]]:
        """The neuron's and the surrogate's constants, tensors and numbers in their places."""
        tensors, numbers = iter(self.constants), iter(self.numbers)
        p, s = (
            tuple(next(numbers) if kind == "n" else next(tensors) for kind in part)
            for part in self.kinds.split("|")
        )
        return p, s


SCHEMA = (
    "Tensor x, Tensor? residual, Tensor? scale, Tensor? shift, Tensor? gain, "
    "Tensor? running_mean, Tensor? running_var, Tensor? initial_u, Tensor? initial_o, "
    "Tensor? start, Tensor[] constants, float[] numbers, str kinds, str equation, str mode, "
    "str place, SymInt steps, SymInt batch, SymInt keep, bool mean, ScalarType? emit, "
    "float gain_number, float eps, SymInt counter, SymInt samples, bool sync, bool detach_reset, "
    "str backend"
)


class Incoming(NamedTuple):
    """What the backward operator is given besides the forward's arguments."""

    out: Tensor | None
    membrane: Tensor | None
    mean: Tensor | None
    moments: Tensor
    affine: Tensor
    affine_wanted: bool
    wanted: str
    """A flag, 0 or 1, for each of the neuron's constants."""


INCOMING_SCHEMA = (
    "Tensor? g_out, Tensor? g_membrane, Tensor? g_mean, Tensor moments, Tensor affine, "
    "bool affine_wanted, str wanted"
)


class Gradients(NamedTuple):
    """What the backward operator returns; empty where nothing was asked for."""

    x: Tensor
    residual: Tensor
    scale: Tensor
    shift: Tensor
    constants: Tensor
    """A row `[C]` for every wanted constant, `T` rows for one per step."""
    initial_u: Tensor
    initial_o: Tensor
