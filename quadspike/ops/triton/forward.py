"""The forward kernel: everything behind the statistics in one read and one write."""

from __future__ import annotations

import triton
import triton.language as tl

from quadspike.ops.triton.common import (
    at,
    columns_of,
    current_of,
    hold,
    in_all,
    spike,
    steps_of,
    tile_of,
)


@triton.jit
def apply_kernel(
    x,
    residual,
    affine,
    p,
    initial_u,
    initial_o,
    out,
    membrane,
    sums,
    equation,
    rows,
    channels,
    space,
    columns,
    STEPS: tl.constexpr,
    CHUNK: tl.constexpr,
    X_STEPS: tl.constexpr,
    RESIDUAL_STEPS: tl.constexpr,
    BEFORE: tl.constexpr,
    AFFINE_KINDS: tl.constexpr,
    P_KINDS: tl.constexpr,
    EMITTED: tl.constexpr,
    STATE: tl.constexpr,
    KEEP: tl.constexpr,
    MEAN: tl.constexpr,
    EMIT: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    LAST: tl.constexpr,
):
    """Affine, residual and neuron: reads x and the residual once, writes the output once.

    With `MEAN` also the sum of a tile's membranes at every step, `sums [programs, STEPS]`.
    """
    # From the end: what the statistics read last is still in the cache.
    program = tl.num_programs(0) - 1 - tl.program_id(0)
    column = program % columns
    channel, exists = columns_of(column, channels, COLUMNS, LAST)
    begin, offsets, inside = tile_of(
        program // columns, column, rows, channels, space, ROWS, COLUMNS, LAST
    )
    stride = tl.full((), 1, tl.int64) * rows * channels * space
    p = hold(p, P_KINDS, channel, exists)
    affine = hold(affine, AFFINE_KINDS, channel, exists)
    if STATE:
        u = tl.load(initial_u + begin + offsets, mask=inside, other=0.0)
        o = tl.load(initial_o + begin + offsets, mask=inside, other=0.0).to(tl.float32)
    else:
        u = tl.zeros([ROWS, COLUMNS], tl.float32)
        o = tl.zeros([ROWS, COLUMNS], tl.float32)
    for start in range(0, STEPS, CHUNK):
        xs = steps_of(x + begin, start, stride, offsets, inside, X_STEPS, CHUNK)
        if RESIDUAL_STEPS > 0:
            rs = steps_of(residual + begin, start, stride, offsets, inside, RESIDUAL_STEPS, CHUNK)
        else:
            rs = xs
        for k in tl.static_range(CHUNK):
            t = start + k
            now = at(p, P_KINDS, t, channels, channel, exists)
            line = at(affine, AFFINE_KINDS, t, channels, channel, exists)
            current = current_of(xs[k], line, rs[k], len(AFFINE_KINDS), RESIDUAL_STEPS * BEFORE)
            u = equation.advance(u, o, current, now)
            o = spike(u, now, equation)
            target = begin + t * stride + offsets
            if EMIT:
                result = o
                if EMITTED >= 0:
                    result = o * now[EMITTED]
                if RESIDUAL_STEPS > 0 and not BEFORE:
                    result = result + rs[k].to(tl.float32)
                tl.store(out + target, result.to(out.dtype.element_ty), mask=inside)
            if KEEP == STEPS:
                tl.store(membrane + target, u, mask=inside)
            if MEAN:
                tl.store(sums + program * STEPS + t, in_all(tl.where(inside, u, 0.0)))
    if KEEP > 0 and KEEP != STEPS:
        tl.store(membrane + begin + offsets, u, mask=inside)
