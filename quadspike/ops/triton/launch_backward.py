"""Launching the backward kernels: sums per channel, what follows from them, input gradients."""

from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple

import torch
import torch.distributed as dist
import triton
from torch import Tensor

from quadspike.ops import equations, layout
from quadspike.ops.registration import gradients, rows_of
from quadspike.ops.signature import Arguments, Gradients, Incoming
from quadspike.ops.triton import tiles
from quadspike.ops.triton.backward import backward_kernel
from quadspike.ops.triton.device import equation
from quadspike.ops.triton.geometry import FINISHING, Shape, affine_kinds, affine_of
from quadspike.ops.triton.launch import launch
from quadspike.ops.triton.normalisation import gather_kernel


class Slots(NamedTuple):
    """Where each sum per channel is kept; -1 for a gradient nobody wants."""

    affine: tuple[int, int]
    p: tuple[int, ...]
    total: int
    each_step: bool

    @classmethod
    def of(cls, a: Arguments, given: Incoming) -> Slots:
        wide = a.affine_steps if given.affine_wanted or a.mode == "batch" else 0
        rows = rows_of(a, given.wanted)
        firsts = accumulate(rows, initial=2 * wide)
        places = tuple(first if count else -1 for first, count in zip(firsts, rows, strict=False))
        each_step = max(wide, *rows) > 1
        return cls((0, wide) if wide else (-1, -1), places, 2 * wide + sum(rows), each_step)


def backward(given: Incoming, a: Arguments) -> Gradients:
    """Gradients of everything, in one launch, or in two where the statistics are the batch's."""
    with torch.cuda.device_of(a.x):
        slots = Slots.of(a, given)
        result = Gradients(*gradients(a, given.affine_wanted, given.wanted))
        if a.mode != "batch":
            partials = walk(given, a, slots, result, None, sums=slots.total > 0, write=True)
            _finish(given, a, slots, result, partials)
        else:
            partials = walk(given, a, slots, result, None, sums=True, write=False)
            coefficients = _finish(given, a, slots, result, partials)
            walk(given, a, slots, result, coefficients, sums=False, write=True)
    return result


def walk(
    given: Incoming,
    a: Arguments,
    slots: Slots,
    result: Gradients,
    coefficients: Tensor | None,
    sums: bool,
    write: bool,
) -> Tensor | None:
    """One pass over the activations, which fills `result`, returns sums, or both."""
    shape = Shape.of(a.x, a.batch)
    chunk = tiles.chunk_of(a.steps, whole=sums and slots.each_step)
    held = chunk * (3 if a.place == "before" and a.residual is not None else 2)
    if sums:
        held += max(0, slots.total - 2)  # scale and shift are counted in
        held *= 3 if a.samples else 1  # draws take registers of their own
    cut = shape.cut("sums" if sums else "input", a.x, held, sums or chunk < a.steps)
    partials = scratch = None
    if sums:
        size = (cut.programs, slots.total, shape.channels)
        partials = a.x.new_empty(size, dtype=torch.float32)
    if chunk < a.steps:
        area = cut.tile.rows * cut.tile.columns
        size = (cut.programs * cut.columns, 2 * (a.steps // chunk), area)
        scratch = a.x.new_empty(size, dtype=torch.float32)
    p, s = a.values()
    known = equations.find(a.equation)
    launch(backward_kernel, cut.programs * cut.columns)(
        a.x,
        a.residual,
        None if given.out is None else layout.settle(given.out, shape.last),
        None if given.membrane is None else layout.settle(given.membrane, shape.last),
        None if given.mean is None else given.mean / a.places,
        affine_of(a, given.affine),
        given.moments,
        coefficients,
        p,
        s,
        a.initial_u,
        a.initial_o,
        a.start,
        a.counter if a.samples else None,
        result.x,
        result.residual,
        result.initial_u,
        result.initial_o,
        partials,
        scratch,
        equation(a),
        *shape[:3],
        layout.space_of(a.x) if a.samples else None,
        cut.blocks,
        cut.columns,
        cut.programs,
        STEPS=a.steps,
        CHUNK=chunk,
        X_STEPS=a.x_steps,
        RESIDUAL_STEPS=a.residual_steps if a.place == "before" else 0,
        AFFINE_KINDS=affine_kinds(a),
        AFFINE_SLOTS=slots.affine,
        P_KINDS=a.p_kinds,
        P_SLOTS=slots.p,
        S_KINDS=a.s_kinds,
        SAMPLES=a.samples,
        SLOTS=slots.total if sums else 0,
        THRESHOLD=known.place("u_th"),
        EMITTED=known.place("emitted"),
        CENTERED=a.mode in ("batch", "running"),
        COEFFICIENTS=coefficients is not None,
        KEEP=0 if given.membrane is None else a.keep,
        OUT=given.out is not None,
        MEAN=given.mean is not None,
        STATE=a.initial_u is not None,
        DETACH=a.detach_reset,
        SUM=sums,
        WRITE=write,
        STAGES=cut.stages,
        ROWS=cut.tile.rows,
        COLUMNS=cut.tile.columns,
        LAST=shape.last,
        num_warps=cut.tile.warps,
    )
    return partials


def _finish(
    given: Incoming, a: Arguments, slots: Slots, result: Gradients, partials: Tensor | None
) -> Tensor | None:
    """Gradients of scale, shift and constants from the programs' sums; x's coefficients."""
    if partials is None:
        return None
    wide = 2 * a.affine_steps if slots.affine[0] >= 0 else 0
    coefficients = None
    if slots.total > wide:
        torch.sum(partials[:, wide:], 0, out=result.constants)
    if wide and a.mode == "given":
        scale, shift = partials[:, :wide].sum(0).chunk(2)
        result.scale.copy_(scale)
        result.shift.copy_(shift)
    elif wide:
        coefficients = _gather(given, a, partials, result.scale, result.shift)
        if a.sync and a.mode == "batch":
            total = partials[:, :wide].sum(0, keepdim=True)
            dist.all_reduce(total)
            spare = torch.empty_like(result.scale), torch.empty_like(result.shift)
            coefficients = _gather(given, a, total, *spare)
    return coefficients


def _gather(
    given: Incoming, a: Arguments, partials: Tensor, g_weight: Tensor, g_bias: Tensor
) -> Tensor:
    programs, slots, channels = partials.shape
    coefficients = partials.new_empty((2, channels))
    launch(gather_kernel, triton.cdiv(channels, FINISHING))(
        partials,
        given.moments,
        given.affine,
        a.scale,
        a.gain,
        a.gain_number,
        g_weight,
        g_bias,
        coefficients,
        channels,
        programs,
        GAIN=a.gain is not None,
        STEPS=a.affine_steps,
        SLOTS=slots,
        PROGRAMS=triton.next_power_of_2(programs),
        CHANNELS=FINISHING,
    )
    return coefficients
