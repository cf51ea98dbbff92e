"""The forward operator on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor

from quadspike.ops import layout
from quadspike.ops.reference import compute_dtype
from quadspike.ops.signature import Arguments
from quadspike.ops.vectorised.blocks import Blocks, Cut, Scratch, keep_pages
from quadspike.ops.vectorised.program import Program
from quadspike.ops.vectorised.statistics import normalise
from quadspike.ops.vectorised.steps import Lines, emits, forward_step


def forward(a: Arguments) -> tuple[Tensor, ...]:
    """Output, membranes kept, their means, moments `[4, C]`, scale and shift `[2, 1 or T, C]`."""
    keep_pages()
    moments, affine = normalise(a)
    out = layout.empty(a.x, a.out_steps * a.batch, a.emit or a.x.dtype)
    membrane = layout.empty(a.x, a.keep * a.batch, compute_dtype(a.x))
    sums = a.x.new_zeros(a.steps if a.mean else 0, dtype=membrane.dtype)
    _over_time(Walk(a, affine, visible=True), out, membrane, sums)
    return out, membrane, sums / a.places, moments, affine


def _over_time(walk: Walk, out: Tensor, membrane: Tensor, sums: Tensor) -> None:
    a, cut = walk.a, walk.cut
    outs, kept = Blocks(out, cut), Blocks(membrane, cut)
    scratch = Scratch(3 + walk.spare, walk.block(0), walk.dtype)
    for index in range(walk.count):
        u, o, other, *spare = scratch.like(walk.block(index))
        state = walk.initial(index)
        for t in range(a.steps):
            here = outs.at(t, index) if a.emit else other
            direct = here if here.dtype == walk.dtype else other
            first = t + a.keep - a.steps
            membranes = kept.at(first, index) if first >= 0 else u
            outputs = [membranes, o, direct] if walk.emits else [membranes, direct]
            walk.step(t, index, state, outputs, spare)
            if here is not direct:
                here.copy_(direct)
            if a.mean:
                sums[t] += membranes.sum()
            state = outputs[:2]


class Walk:
    """The steps of a soma over a block: the forward operator's, and the backward's again."""

    def __init__(self, a: Arguments, affine: Tensor, visible: bool) -> None:
        self.a, self.dtype = a, compute_dtype(a.x)
        self.cut = Cut.of(a.x, a.batch, a.steps)
        given = [a.x] if a.residual is None else [a.x, a.residual]
        self._given = [Blocks(value, self.cut) for value in given]
        self.count = self._given[0].count
        starts = (a.initial_u, a.initial_o)
        self._starts = [Blocks(start, self.cut) for start in starts if start is not None]
        self.rest = not self._starts
        self._constants = _constants(a, affine, self.cut, self.dtype)
        lines = [Lines.of(a, rest) for rest in (self.rest, False)]
        self.emits = emits(lines[0])
        first, later = (forward_step(each, visible) for each in lines)
        self.programs = [first, *[later] * (a.steps - 1)]
        self.spare = max(program.spare for program in self.programs)
        self._fixed: dict[tuple[Program, int, int], list[Tensor]] = {}

    def initial(self, index: int) -> list[Tensor]:
        """Where a block stands before the first step; nothing at rest."""
        return [start.at(0, index).to(self.dtype) for start in self._starts]

    def block(self, index: int) -> Tensor:
        """A block of x, whose shape all have."""
        return self._given[0].at(0, index)

    def inputs(self, t: int, index: int) -> list[Tensor]:
        """x, and the residual if there is one, at a step."""
        return [value.at(t, index).to(self.dtype) for value in self._given]

    def step(
        self,
        t: int,
        index: int,
        state: Sequence[Tensor],
        outputs: Sequence[Tensor],
        spare: Sequence[Tensor],
    ) -> None:
        """One step of a block."""
        program, inputs = self.programs[t], self.inputs(t, index)
        program([*state, *inputs], outputs, spare, self.fixed(program, t, inputs[0]))

    def fixed(
        self, program: Program, t: int, block: Tensor, more: Sequence[Tensor] = ()
    ) -> list[Tensor]:
        """What the program makes of the constants at a step, for blocks of this width."""
        width = block.shape[1]
        key = (program, t, width)
        if key not in self._fixed:
            row = [value[min(t, len(value) - 1)] for value in self._constants]
            cut = [value[:width] if value.ndim else value for value in (*row, *more)]
            self._fixed[key] = program.fix(cut, self.dtype)
        return self._fixed[key]


def _constants(a: Arguments, affine: Tensor, cut: Cut, dtype: torch.dtype) -> list[list[Tensor]]:
    """Scale, shift, the neuron's and the surrogate's tensors: a tile for every step, or one."""
    rows = [a.scale, a.shift] if a.mode == "given" else list(affine) if a.mode != "none" else []
    listed = [value if value.ndim == 2 else value[None] for value in a.constants]
    return [[cut.tile(row, dtype) for row in cast(Tensor, value)] for value in (*rows, *listed)]
