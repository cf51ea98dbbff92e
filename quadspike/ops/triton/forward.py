"""The forward kernels: statistics in one read, then everything else in one read and one write."""

from __future__ import annotations

import triton
import triton.language as tl

from quadspike.ops.triton.common import (
    at,
    columns_of,
    current_of,
    hold,
    in_all,
    per_channel,
    spike,
    steps_of,
    tile_of,
    values_in,
)


@triton.jit
def statistics_kernel(
    x,
    partials,
    rows,
    channels,
    space,
    blocks,
    columns,
    programs,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    LAST: tl.constexpr,
    AT_ONCE: tl.constexpr,
):
    """Number, mean and squared deviations of a program's share, `partials [programs, 3, C]`.

    Sums are of deviations from the share's first value, so a mean far beyond the spread costs
    no digits, and are kept apart for every place of the tile until the end.
    """
    column = tl.program_id(0) % columns
    first = tl.program_id(0) // columns
    channel, exists = columns_of(column, channels, COLUMNS, LAST)
    begin, offsets, inside = tile_of(first, column, rows, channels, space, ROWS, COLUMNS, LAST)
    to_channel = tl.arange(0, COLUMNS)[None, :] if LAST else 0
    pivot = tl.load(x + begin + to_channel, mask=exists, other=0.0).to(tl.float32)
    deviations = tl.zeros([ROWS, COLUMNS], tl.float32)
    squares = tl.zeros([ROWS, COLUMNS], tl.float32)
    count = 0
    for i in range(first, blocks, programs * AT_ONCE):
        values = ()
        masks = ()
        for j in tl.static_range(AT_ONCE):
            begin, offsets, inside = tile_of(
                i + j * programs, column, rows, channels, space, ROWS, COLUMNS, LAST
            )
            values = values + (tl.load(x + begin + offsets, mask=inside, other=0.0),)
            masks = masks + (inside,)
            count += values_in(i + j * programs, rows, space, ROWS, COLUMNS, LAST)
        for j in tl.static_range(AT_ONCE):
            deviation = tl.where(masks[j], values[j].to(tl.float32) - pivot, 0.0)
            deviations += deviation
            squares += deviation * deviation
    n = count.to(tl.float32)
    total = per_channel(deviations, LAST)
    shift = total / n
    target = partials + first * 3 * channels + channel
    tl.store(target, tl.zeros_like(pivot) + n, mask=exists)
    tl.store(target + channels, pivot + shift, mask=exists)
    tl.store(target + 2 * channels, per_channel(squares, LAST) - total * shift, mask=exists)


@triton.jit
def normalise_kernel(
    partials,
    running_mean,
    running_var,
    weight,
    bias,
    gain,
    gain_number,
    eps,
    repeats,
    moments,
    affine,
    channels,
    programs,
    BATCH: tl.constexpr,
    GAIN: tl.constexpr,
    STEPS: tl.constexpr,
    PROGRAMS: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    """Mean, unbiased variance, 1/std and 1/n as `moments [4, C]`; scale and shift `[2, STEPS, C]`.

    In a batch the shares of all programs are merged by Chan's rule.
    """
    channel = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)
    exists = channel < channels
    if BATCH:
        share = tl.arange(0, PROGRAMS)[:, None]
        source = partials + share * 3 * channels + channel[None, :]
        mask = (share < programs) & exists[None, :]
        n = tl.load(source, mask=mask, other=0.0)
        means = tl.load(source + channels, mask=mask, other=0.0)
        m2 = tl.load(source + 2 * channels, mask=mask, other=0.0)
        pivot = tl.load(partials + channels + channel, mask=exists, other=0.0)
        total = tl.maximum(tl.sum(n, 0), 2.0)
        mean = pivot + tl.sum(n * (means - pivot[None, :]), 0) / total
        apart = means - mean[None, :]
        var = tl.sum(m2 + n * apart * apart, 0) / total
        count = total * repeats
        unbiased = var * (count / (count - 1.0))
        tl.store(moments + 3 * channels + channel, 1.0 / total, mask=exists)
    else:
        mean = tl.load(running_mean + channel, mask=exists, other=0.0).to(tl.float32)
        var = tl.load(running_var + channel, mask=exists, other=1.0).to(tl.float32)
        unbiased = var
        tl.store(moments + 3 * channels + channel, tl.zeros_like(var), mask=exists)
    rstd = tl.div_rn(tl.full([CHANNELS], 1.0, tl.float32), tl.sqrt_rn(var + eps))
    tl.store(moments + channel, mean, mask=exists)
    tl.store(moments + channels + channel, unbiased, mask=exists)
    tl.store(moments + 2 * channels + channel, rstd, mask=exists)
    factor = rstd * gain_number
    if GAIN:
        factor *= tl.load(gain + channel, mask=exists, other=1.0).to(tl.float32)
    for t in range(STEPS):
        row = t * channels + channel
        scale = factor * tl.load(weight + row, mask=exists, other=1.0).to(tl.float32)
        shift = tl.load(bias + row, mask=exists, other=0.0).to(tl.float32) - scale * mean
        tl.store(affine + row, scale, mask=exists)
        tl.store(affine + STEPS * channels + row, shift, mask=exists)


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
