"""The kernels of a normalisation: its statistics, what they make, and their share of gradients."""

from __future__ import annotations

import triton
import triton.language as tl

from quadspike.ops.triton.common import columns_of, per_channel, tile_of, values_in


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
def gather_kernel(
    partials,
    moments,
    affine,
    weight,
    gain,
    gain_number,
    weight_gradient,
    bias_gradient,
    coefficients,
    channels,
    programs,
    GAIN: tl.constexpr,
    STEPS: tl.constexpr,
    SLOTS: tl.constexpr,
    PROGRAMS: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    """From the programs' sums to the gradients of weight and bias and x's two coefficients.

    The statistics add `slope (x - mean) + constant` to every gradient of x.
    """
    channel = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)
    exists = channel < channels
    share = tl.arange(0, PROGRAMS)[:, None]
    source = partials + share * SLOTS * channels + channel[None, :]
    mask = (share < programs) & exists[None, :]
    rstd = tl.load(moments + 2 * channels + channel, mask=exists, other=0.0)
    one_over_n = tl.load(moments + 3 * channels + channel, mask=exists, other=0.0)
    factor = rstd * gain_number
    if GAIN:
        factor *= tl.load(gain + channel, mask=exists, other=1.0).to(tl.float32)
    g_rstd = tl.zeros([CHANNELS], tl.float32)
    g_mean = tl.zeros([CHANNELS], tl.float32)
    for t in range(STEPS):
        row = t * channels + channel
        centered = tl.sum(tl.load(source + t * channels, mask=mask, other=0.0), 0)
        total = tl.sum(tl.load(source + (STEPS + t) * channels, mask=mask, other=0.0), 0)
        tl.store(weight_gradient + row, factor * centered, mask=exists)
        tl.store(bias_gradient + row, total, mask=exists)
        # With g_weight = factor * sum: rstd * g_rstd = weight * g_weight.
        g_rstd += factor * tl.load(weight + row, mask=exists, other=0.0).to(tl.float32) * centered
        g_mean -= tl.load(affine + row, mask=exists, other=0.0) * total
    tl.store(coefficients + channel, -g_rstd * rstd * rstd * one_over_n, mask=exists)
    tl.store(coefficients + channels + channel, g_mean * one_over_n, mask=exists)
