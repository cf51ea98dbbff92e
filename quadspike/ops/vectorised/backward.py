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
from quadspike.ops.vectorised.blocks import Blocks, Cut, Scratch
from quadspike.ops.vectorised.forward import Walk
from quadspike.ops.vectorised.program import Program
from quadspike.ops.vectorised.statistics import factor
from quadspike.ops.vectorised.steps import Asked, Lines, backward_step, correction


def backward(given: Incoming, a: Arguments) -> Gradients:
    """Gradients of everything asked for."""
    result = Gradients(*gradients(a, given.affine_wanted, given.wanted))
    dtype = compute_dtype(a.x)
    made = Gradients(*(torch.empty_like(g, dtype=dtype) if g.dtype != dtype else g for g in result))
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
        self.given, self.a = given, a
        self.walk = walk = Walk(a, given.affine, visible=False)
        self.cut, dtype = walk.cut, walk.dtype
        wide = a.affine_steps if given.affine_wanted or a.mode == "batch" else 0
        self.centered = wide > 0 and a.mode in ("batch", "running")
        self.mean = [self.cut.tile(given.moments[0], dtype)] if self.centered else []
        rows = [count for count in rows_of(a, given.wanted) if count]
        self.sums = [torch.zeros(n, self.cut.width, dtype=dtype) for n in (wide, wide, *rows)]
        self.terms = 2 * (wide > 0) + len(rows)
        last = layout.has_channels_last(a.x)
        self.g_out: Blocks | None = None
        if given.out is not None:
            self.g_out = Blocks(layout.settle(given.out, last), self.cut)
        self.g_membrane: Blocks | None = None
        if given.membrane is not None:
            self.g_membrane = Blocks(layout.settle(given.membrane, last), self.cut)
        self.g_mean = None if given.mean is None else given.mean / a.places
        filled = [made.x] if a.residual is None else [made.x, made.residual]
        self.filled = [Blocks(g, self.cut) for g in filled]
        self.g_state = [Blocks(g.zero_(), self.cut) for g in (made.initial_u, made.initial_o)]
        self.carried = 1 if a.detach_reset else 2
        self.programs = [self._program(t) for t in range(a.steps)]

    def run(self) -> list[Tensor]:
        """Sums per channel `[1 or T, C]`: shift's, scale's, and those of the constants wanted."""
        spare = max(program.spare for program in (*self.walk.programs, *self.programs))
        count = 2 * self.a.steps + 4 + len(self.sums) + spare
        walk = self.walk
        scratch = Scratch(count, walk.block(0), walk.dtype)
        for index in range(walk.count):
            self._over(index, scratch.like(walk.block(index)))
        return [self.cut.per_channel(total) for total in self.sums]

    def _over(self, index: int, memory: Sequence[Tensor]) -> None:
        a, walk, last = self.a, self.walk, self.a.steps - 1
        after = [memory[2 * t : 2 * t + 2] for t in range(a.steps)]
        memory = memory[2 * a.steps :]
        carries, terms, spare = memory[:4], memory[4:][: self.terms], memory[4 + self.terms :]
        before = [walk.initial(index), *after[:-1]]
        for t in range(a.steps):
            walk.step(t, index, before[t], after[t], spare)
        carry: Sequence[Tensor] = ()
        for t in range(last, -1, -1):
            program = self.programs[t]
            inputs = [*before[t], *walk.inputs(t, index), after[t][0]]
            if self.g_out is not None:
                inputs.append(self.g_out.at(t, index).to(walk.dtype))
            if self.g_membrane is not None and self._has_membrane(t):
                inputs.append(self.g_membrane.at(t - a.steps + a.keep, index))
            if self.g_mean is not None:
                inputs.append(self.g_mean[t].expand_as(inputs[-1]))
            inputs += carry
            outputs = [whole.at(t, index) for whole in self.filled]
            for whole, output in zip(self.filled, outputs, strict=True):
                if whole.steps < a.steps and t < last:
                    inputs.append(output)
            first = len(outputs)
            for k, term in enumerate(terms, first):
                same = program.same[k]
                outputs.append(term if same == k else outputs[same])
            carry = carries[2 * (t % 2) :][: self.carried]
            if t == 0:
                carry = [g.at(0, index) for g in self.g_state[: self.carried] if g.steps]
            fixed = walk.fixed(program, t, inputs[-1], self.mean)
            program(inputs, [*outputs, *carry], spare, fixed)
            for total, term in zip(self.sums[-self.terms :], outputs[first:], strict=False):
                total[min(t, len(total) - 1), : term.shape[1]] += term.sum(0)

    def _program(self, t: int) -> Program:
        a, walk, last = self.a, self.walk, self.a.steps - 1
        residual = a.residual is not None
        asked = Asked(
            out=self.g_out is not None,
            later=t < last,
            membrane=self._has_membrane(t),
            mean=self.g_mean is not None,
            earlier=t > 0 or not walk.rest,
            detach_reset=a.detach_reset,
            repeated=a.x_steps < a.steps and t < last,
            residual=residual,
            repeated_residual=residual and a.residual_steps < a.steps and t < last,
            scaled=a.mode != "none" and not _scaled_later(a),
            affine=len(self.sums[0]) > 0,
            centered=self.centered,
            wanted=self.given.wanted,
        )
        return backward_step(Lines.of(a, rest=walk.rest and t == 0), asked)

    def _has_membrane(self, t: int) -> bool:
        return self.given.membrane is not None and t >= self.a.steps - self.a.keep


def _scaled_later(a: Arguments) -> bool:
    """Whether the pass that follows the batch's sums can also multiply by the scale."""
    return a.mode == "batch" and a.affine_steps == 1


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
    scale = given.affine[0, 0] if _scaled_later(a) else torch.ones_like(mean)
    tiles = [cut.tile(value, made.x.dtype) for value in (scale, slope, constant)]
    x, g = Blocks(a.x, cut), Blocks(made.x, cut)
    scratch = Scratch(program.spare, g.at(0, 0), made.x.dtype)
    for index in range(g.count):
        here = g.at(0, index)
        fixed = program.fix([tile[: here.shape[1]] for tile in tiles], here.dtype)
        program([x.at(0, index).to(here.dtype), here], [here], scratch.like(here), fixed)
