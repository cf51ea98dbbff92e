"""The forward operator on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor

from quadspike.ops import layout
from quadspike.ops.reference import compute_dtype
from quadspike.ops.signature import Arguments
from quadspike.ops.vectorised.blocks import Block, Cut, Scratch, flat, size_of_block
from quadspike.ops.vectorised.program import Program
from quadspike.ops.vectorised.statistics import normalise
from quadspike.ops.vectorised.steps import Lines, forward_step


def forward(a: Arguments) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Output, membranes kept, moments `[4, C]`, scale and shift `[2, 1 or T, C]`."""
    moments, affine = normalise(a)
    dtype = compute_dtype(a.x)
    out = layout.empty(a.x, a.steps * a.batch, a.x.dtype)
    membrane = layout.empty(a.x, a.keep * a.batch, dtype)
    outs, kept = flat(out, a.steps), flat(membrane, a.keep) if a.keep else membrane
    walk = Walk(a, affine, visible=True)
    size = size_of_block(1, 4)
    scratch = Scratch(3 + walk.spare, max(size, walk.cut.width), dtype)
    for block in walk.cut.blocks(size):
        u, o, other, *spare = scratch.of(block)
        state = walk.initial(block)
        for t in range(a.steps):
            here = block.of(outs[t])
            direct = here if here.dtype == dtype else other
            first = t + a.keep - a.steps
            u_now = block.of(kept[first]) if first >= 0 else u
            outputs = [u_now, direct] if not walk.after else [u_now, o, direct]
            walk.step(t, block, state, outputs, spare)
            if here is not direct:
                here.copy_(direct)
            state = outputs[:2]
    return out, membrane, moments, affine


class Walk:
    """The steps of a soma over a block: the forward operator's, and the backward's again."""

    def __init__(self, a: Arguments, affine: Tensor, visible: bool) -> None:
        self.a, self.dtype = a, compute_dtype(a.x)
        self.cut = Cut.of(a.x, a.batch)
        self.x = flat(a.x, a.x_steps)
        self.residual = None if a.residual is None else flat(a.residual, a.residual_steps)
        self.after = self.residual is not None and a.place == "after"
        starts = [a.initial_u, a.initial_o]
        self._starts = [flat(start, 1)[0] for start in starts if start is not None]
        self.rest = not self._starts
        self.constants = _constants(a, affine, self.cut, self.dtype)
        first, later = (forward_step(Lines.of(a, rest), visible) for rest in (self.rest, False))
        self.programs = [first, *[later] * (a.steps - 1)]
        self.spare = max(program.spare for program in self.programs)
        self._fixed: dict[tuple[int, int, int], list[Tensor]] = {}

    def initial(self, block: Block) -> list[Tensor]:
        """Where the block stands before the first step; nothing at rest."""
        return [block.of(start).to(self.dtype) for start in self._starts]

    def inputs(self, t: int, block: Block) -> list[Tensor]:
        """x, and the residual if there is one, at a step."""
        given = [self.x] if self.residual is None else [self.x, self.residual]
        return [block.of(values[min(t, len(values) - 1)]).to(self.dtype) for values in given]

    def step(
        self,
        t: int,
        block: Block,
        state: Sequence[Tensor],
        outputs: Sequence[Tensor],
        spare: Sequence[Tensor],
    ) -> None:
        """One step of a block."""
        program = self.programs[t]
        fixed = self.fixed(program, t, block)
        program([*state, *self.inputs(t, block)], outputs, spare, fixed)

    def fixed(
        self, program: Program, t: int, block: Block, more: Sequence[Tensor] = ()
    ) -> list[Tensor]:
        """What the program makes of the constants at a step, for blocks of this width."""
        key = (id(program), t, block.w)
        if key not in self._fixed:
            row = [value[min(t, len(value) - 1)] for value in self.constants]
            wide = [value[: block.w] if value.ndim else value for value in (*row, *more)]
            self._fixed[key] = program.fix(wide, self.dtype)
        return self._fixed[key]


def _constants(a: Arguments, affine: Tensor, cut: Cut, dtype: torch.dtype) -> list[list[Tensor]]:
    """Scale, shift, then the neuron's and the surrogate's tensors: a tile for every step, or one."""
    rows = [a.scale, a.shift] if a.mode == "given" else list(affine) if a.mode != "none" else []
    listed = [value if value.ndim == 2 else value[None] for value in a.constants]
    return [[cut.tile(row, dtype) for row in cast(Tensor, value)] for value in (*rows, *listed)]
