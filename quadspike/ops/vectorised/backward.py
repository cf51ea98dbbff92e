"""The backward operator on the CPU: the steps again, then their gradients from the last."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from quadspike.ops import layout
from quadspike.ops.reference import compute_dtype
from quadspike.ops.registration import gradients, rows_of
from quadspike.ops.signature import Arguments, Gradients, Incoming
from quadspike.ops.vectorised.blocks import Block, Cut, Scratch, flat, size_of_block
from quadspike.ops.vectorised.forward import Walk
from quadspike.ops.vectorised.program import Program
from quadspike.ops.vectorised.statistics import factor
from quadspike.ops.vectorised.steps import Asked, Lines, backward_step, correction


def backward(given: Incoming, a: Arguments) -> Gradients:
    """Gradients of everything asked for."""
    result = Gradients(*gradients(a, given.affine_wanted, given.wanted))
    dtype = compute_dtype(a.x)
    made = Gradients(
        *(value if value.dtype == dtype else torch.empty_like(value, dtype=dtype) for value in result)
    )
    shift, scale, *constants = _Pass(given, a, made).run()
    if len(shift):
        _finish_affine(given, a, made, shift, scale)
    if constants:
        torch.cat(constants, out=made.constants)
    for value, computed in zip(result, made, strict=True):
        if value is not computed:
            value.copy_(computed)
    return result


class _Pass:
    """All blocks, forward and back: fills gradients element by element, and sums."""

    def __init__(self, given: Incoming, a: Arguments, made: Gradients) -> None:
        self.given, self.a, self.made = given, a, made
        self.walk = walk = Walk(a, given.affine, visible=False)
        self.cut, dtype = walk.cut, walk.dtype
        summed = given.affine_wanted or a.mode == "batch"
        self.centered = summed and a.mode in ("batch", "running")
        self.mean = [self.cut.tile(given.moments[0], dtype)] if self.centered else []
        self.terms = 2 * summed
        wide = a.affine_steps if summed else 0
        rows = [count for count in rows_of(a, given.wanted) if count]
        self.sums = [torch.zeros(n, self.cut.width, dtype=dtype) for n in (wide, wide, *rows)]
        self.programs = [self._program(t) for t in range(a.steps)]
        last = layout.has_channels_last(a.x)
        self.g_out = flat(layout.settle(given.out, last), a.steps)
        self.g_membrane: Sequence[Tensor] = ()
        if given.membrane is not None:
            self.g_membrane = flat(layout.settle(given.membrane, last), a.keep)
        self.g_x = flat(made.x, a.x_steps)
        self.g_residual: Sequence[Tensor] = ()
        if a.residual is not None:
            self.g_residual = flat(made.residual, a.residual_steps)
        self.g_state = [flat(g.zero_(), 1)[0] for g in (made.initial_u, made.initial_o) if len(g)]

    def run(self) -> list[Tensor]:
        """Sums per channel `[1 or T, C]`: shift's, scale's, and those of the constants wanted."""
        steps = self.a.steps
        size = size_of_block(steps, 2)
        spare = max(program.spare for program in (*self.walk.programs, *self.programs))
        count = 2 * steps + 4 + len(self.sums) + spare
        scratch = Scratch(count, max(size, self.cut.width), self.walk.dtype)
        for block in self.cut.blocks(size):
            self._over(block, scratch.of(block))
        return [self.cut.per_channel(total) for total in self.sums]

    def _over(self, block: Block, memory: list[Tensor]) -> None:
        a, walk = self.a, self.walk
        after, memory = list(zip(memory[: a.steps], memory[a.steps :], strict=False)), memory[2 * a.steps :]
        carries, terms, spare = memory[:4], memory[4 : 4 + len(self.sums)], memory[4 + len(self.sums) :]
        before = [walk.initial(block), *after[:-1]]
        for t in range(a.steps):
            walk.step(t, block, before[t], after[t], spare)
        carry: list[Tensor] = []
        for t in reversed(range(a.steps)):
            program = self.programs[t]
            inputs = [*before[t], *walk.inputs(t, block), after[t][0]]
            inputs.append(block.of(self.g_out[t]).to(walk.dtype))
            if self._has_membrane(t):
                inputs.append(block.of(self.g_membrane[t - a.steps]))
            inputs += carry
            outputs = []
            for whole in (self.g_x, self.g_residual):
                if len(whole):
                    outputs.append(block.of(whole[min(t, len(whole) - 1)]))
                    if len(whole) < a.steps and t < a.steps - 1:
                        inputs.append(outputs[-1])
            first = len(outputs)
            for k, term in enumerate(terms[2 - self.terms :], first):
                same = program.same[k]
                outputs.append(term if same == k else outputs[same])
            carry = carries[2 * (t % 2) :][: 1 if a.detach_reset else 2]
            if t == 0:
                carry = [block.of(g) for g in self.g_state[: len(carry)]]
            fixed = walk.fixed(program, t, block, self.mean)
            program(inputs, [*outputs, *carry], spare, fixed)
            for total, term in zip(self.sums[2 - self.terms :], outputs[first:], strict=True):
                total[min(t, len(total) - 1), : block.w] += term.sum(0)

    def _program(self, t: int) -> Program:
        a, walk, last = self.a, self.walk, self.a.steps - 1
        residual = a.residual is not None
        asked = Asked(
            later=t < last,
            membrane=self._has_membrane(t),
            earlier=t > 0 or not walk.rest,
            detach_reset=a.detach_reset,
            repeated=a.x_steps < a.steps and t < last,
            residual=residual,
            repeated_residual=residual and a.residual_steps < a.steps and t < last,
            affine=self.terms > 0,
            centered=self.centered,
            wanted=self.given.wanted,
        )
        return backward_step(Lines.of(a, rest=walk.rest and t == 0), asked)

    def _has_membrane(self, t: int) -> bool:
        return self.given.membrane is not None and t >= self.a.steps - self.a.keep


def _finish_affine(
    given: Incoming, a: Arguments, made: Gradients, shift: Tensor, scale: Tensor
) -> None:
    """Gradients of scale and shift, and what the batch's statistics pass on to x."""
    made.shift.copy_(shift)
    if a.mode == "given":
        made.scale.copy_(scale)
        return
    mean, _, rstd, one_over_n = given.moments
    made.scale.copy_(factor(a, rstd) * scale)
    if a.mode == "running":
        return
    if a.sync:
        both = torch.stack([shift, scale])
        dist.all_reduce(both)
        shift, scale = both
    slope = -(given.affine[0] * scale).sum(0) * rstd * rstd * one_over_n
    constant = -(given.affine[0] * shift).sum(0) * one_over_n - slope * mean
    cut, program = Cut.of(a.x, a.x.shape[0]), correction()
    x, g, size = flat(a.x, 1)[0], flat(made.x, 1)[0], size_of_block(1, 4)
    tiles = [cut.tile(value, g.dtype) for value in (slope, constant)]
    scratch = Scratch(program.spare, max(size, cut.width), g.dtype)
    for block in cut.blocks(size):
        here = block.of(g)
        fixed = program.fix([tile[: block.w] for tile in tiles], g.dtype)
        program([block.of(x).to(g.dtype), here], [here], scratch.of(block), fixed)
