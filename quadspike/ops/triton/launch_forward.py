"""Launching the forward kernels: statistics, scale and shift, everything else."""

from __future__ import annotations

import torch
import triton
from torch import Tensor

from quadspike.ops import equations, layout
from quadspike.ops.moments import merged, of_all_workers
from quadspike.ops.signature import Arguments
from quadspike.ops.triton import tiles
from quadspike.ops.triton.device import equation
from quadspike.ops.triton.forward import apply_kernel
from quadspike.ops.triton.geometry import FINISHING, Shape, affine_kinds, affine_of
from quadspike.ops.triton.launch import launch
from quadspike.ops.triton.normalisation import normalise_kernel, statistics_kernel


def forward(a: Arguments) -> tuple[Tensor, ...]:
    """Output, membranes kept, their means, moments `[4, C]`, scale and shift `[2, 1 or T, C]`."""
    with torch.cuda.device_of(a.x):
        moments, affine = _normalise(a)
        return *apply(a, affine), moments, affine


def apply(a: Arguments, affine: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Output, membranes kept and mean membranes, from scale and shift."""
    out = layout.empty(a.x, a.out_steps * a.batch, a.emit or a.x.dtype)
    membrane = layout.empty(a.x, a.keep * a.batch, torch.float32)
    shape = Shape.of(a.x, a.batch)
    chunk = tiles.chunk_of(a.steps, whole=False)
    cut = shape.cut("apply", a.x, chunk, persistent=False)
    programs = cut.blocks * cut.columns
    sums = a.x.new_empty((programs if a.mean else 0, a.steps), dtype=torch.float32)
    launch(apply_kernel, programs)(
        a.x,
        a.residual,
        affine_of(a, affine),
        a.values()[0],
        a.initial_u,
        a.initial_o,
        out,
        membrane,
        sums,
        equation(a),
        *shape[:3],
        cut.columns,
        STEPS=a.steps,
        CHUNK=chunk,
        X_STEPS=a.x_steps,
        RESIDUAL_STEPS=a.residual_steps,
        BEFORE=a.place == "before",
        AFFINE_KINDS=affine_kinds(a),
        P_KINDS=a.p_kinds,
        EMITTED=equations.find(a.equation).place("emitted"),
        STATE=a.initial_u is not None,
        KEEP=a.keep,
        MEAN=a.mean,
        EMIT=a.emit is not None,
        ROWS=cut.tile.rows,
        COLUMNS=cut.tile.columns,
        LAST=shape.last,
        num_warps=cut.tile.warps,
    )
    mean = sums.sum(0) / a.places if a.mean else sums.new_empty(0)
    return out, membrane, mean


def _normalise(a: Arguments) -> tuple[Tensor, Tensor]:
    """Moments, and the scale and shift they make; empty where no norm was given."""
    if a.mode not in ("batch", "running"):
        return a.x.new_empty(0, dtype=torch.float32), a.x.new_empty(0, dtype=torch.float32)
    assert a.scale is not None
    channels = a.x.shape[1]
    partials = statistics(a.x) if a.mode == "batch" else None
    if partials is not None and a.sync:
        partials = of_all_workers(merged(partials))
    moments = a.x.new_empty((4, channels), dtype=torch.float32)
    affine = a.x.new_empty((2, *a.scale.shape), dtype=torch.float32)
    programs = 1 if partials is None else partials.shape[0]
    launch(normalise_kernel, triton.cdiv(channels, FINISHING))(
        partials,
        a.running_mean,
        a.running_var,
        a.scale,
        a.shift,
        a.gain,
        a.gain_number,
        a.eps,
        a.steps // a.x_steps,
        moments,
        affine,
        channels,
        programs,
        BATCH=a.mode == "batch",
        GAIN=a.gain is not None,
        STEPS=a.affine_steps,
        PROGRAMS=triton.next_power_of_2(programs),
        CHANNELS=FINISHING,
    )
    return moments, affine


def statistics(x: Tensor) -> Tensor:
    """Number, mean and squared deviations of every program's share, `[programs, 3, C]`."""
    shape = Shape.of(x, x.shape[0])  # time is only more samples here
    cut = shape.cut("statistics", x, 1, persistent=True)
    partials = x.new_empty((cut.programs, 3, shape.channels), dtype=torch.float32)
    launch(statistics_kernel, cut.programs * cut.columns)(
        x,
        partials,
        *shape[:3],
        cut.blocks,
        cut.columns,
        cut.programs,
        ROWS=cut.tile.rows,
        COLUMNS=cut.tile.columns,
        LAST=shape.last,
        AT_ONCE=tiles.AT_ONCE,
        num_warps=cut.tile.warps,
    )
    return partials
