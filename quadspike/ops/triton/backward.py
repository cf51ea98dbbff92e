"""The backward kernel.

The membrane is recomputed from x, then the recursion runs back in time: with g_u the
gradient of u(t) and g_o that of o(t),

    g_v = g_o S(v),   g_u += g_v dv/du,   g(t) = g_u du/dx,
    g_o(t-1) = (from above) + g_u du/do,   g_u(t-1) = g_u du/du(t-1),

where "from above" is the output's gradient, times the constant `emitted` if there is one.

Where the statistics are the batch's, the gradient of x needs sums over all g first: one
launch for the sums, one for the gradients of the inputs. Otherwise one launch does both.
"""

from __future__ import annotations

import triton
import triton.language as tl

from quadspike.ops.triton.common import (
    STEP,
    at,
    columns_of,
    current_of,
    hold,
    per_channel,
    steps_of,
    tile_of,
)
from quadspike.ops.triton.draws import first_word, places_of, slope_of


@triton.jit
def add_to(totals, index: tl.constexpr, value):
    """`totals` with `value` added in one place."""
    updated = ()
    for i in tl.static_range(len(totals)):
        updated = updated + (totals[i] + value if i == index else totals[i],)
    return updated


@triton.jit
def backward_kernel(
    x,
    residual,
    out_gradient,
    membrane_gradient,
    mean_gradient,
    affine,
    mean,
    coefficients,
    p,
    s,
    initial_u,
    initial_o,
    stream,
    counter,
    x_gradient,
    residual_gradient,
    u_gradient,
    o_gradient,
    partials,
    scratch,
    equation,
    rows,
    channels,
    space,
    places,
    blocks,
    columns,
    programs,
    STEPS: tl.constexpr,
    CHUNK: tl.constexpr,
    X_STEPS: tl.constexpr,
    RESIDUAL_STEPS: tl.constexpr,
    AFFINE_KINDS: tl.constexpr,
    AFFINE_SLOTS: tl.constexpr,
    P_KINDS: tl.constexpr,
    P_SLOTS: tl.constexpr,
    S_KINDS: tl.constexpr,
    SAMPLES: tl.constexpr,
    SLOTS: tl.constexpr,
    THRESHOLD: tl.constexpr,
    EMITTED: tl.constexpr,
    CENTERED: tl.constexpr,
    COEFFICIENTS: tl.constexpr,
    KEEP: tl.constexpr,
    MEAN: tl.constexpr,
    OUT: tl.constexpr,
    STATE: tl.constexpr,
    DETACH: tl.constexpr,
    SUM: tl.constexpr,
    WRITE: tl.constexpr,
    STAGES: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    LAST: tl.constexpr,
):
    """Sums of gradients per channel (`SUM`), gradients of the inputs (`WRITE`), or both.

    `stream` and `counter` are those of `SAMPLES` draws, `places` how many a channel has in a
    sample. A slot is one sum per channel. `AFFINE_SLOTS` and `P_SLOTS` give the first slot of each
    constant, -1 for one whose gradient nobody wants; a constant per step takes `STEPS` slots,
    and then `CHUNK` must be `STEPS`.
    """
    CHUNKS: tl.constexpr = STEPS // CHUNK
    program = tl.program_id(0)
    if WRITE and not SUM:
        # From the end: what the sums read last is still in the cache.
        program = tl.num_programs(0) - 1 - program
    column = program % columns
    channel, exists = columns_of(column, channels, COLUMNS, LAST)
    stride = tl.full((), 1, tl.int64) * rows * channels * space
    p = hold(p, P_KINDS, channel, exists)
    s = hold(s, S_KINDS, channel, exists)
    affine = hold(affine, AFFINE_KINDS, channel, exists)
    if CENTERED:
        center = tl.load(mean + channel, mask=exists, other=0.0)
    else:
        center = 0.0
    if COEFFICIENTS:
        slope = tl.load(coefficients + channel, mask=exists, other=0.0)
        constant = tl.load(coefficients + channels + channel, mask=exists, other=0.0)
    word = first_word(stream, counter, SAMPLES)
    totals = ()
    for slot in tl.static_range(SLOTS):
        totals = totals + (tl.zeros([ROWS, COLUMNS], tl.float32),)
    # A program's own corner of the scratch memory: u and o where each chunk begins.
    corner = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    corner += program * (2 * CHUNKS * ROWS * COLUMNS)
    for block in tl.range(program // columns, blocks, programs, num_stages=STAGES):
        begin, offsets, inside = tile_of(block, column, rows, channels, space, ROWS, COLUMNS, LAST)
        if STATE:
            u = tl.load(initial_u + begin + offsets, mask=inside, other=0.0)
            o = tl.load(initial_o + begin + offsets, mask=inside, other=0.0).to(tl.float32)
        else:
            u = tl.zeros([ROWS, COLUMNS], tl.float32)
            o = tl.zeros([ROWS, COLUMNS], tl.float32)
        if CHUNKS > 1:
            tl.debug_barrier()  # the last block's corner has been read
            for chunk in range(CHUNKS):
                tl.store(scratch + chunk * (2 * ROWS * COLUMNS) + corner, u)
                tl.store(scratch + (2 * chunk + 1) * (ROWS * COLUMNS) + corner, o)
                begun = chunk * CHUNK
                xs = steps_of(x + begin, begun, stride, offsets, inside, X_STEPS, CHUNK)
                if RESIDUAL_STEPS > 0:
                    rs = steps_of(
                        residual + begin, begun, stride, offsets, inside, RESIDUAL_STEPS, CHUNK
                    )
                else:
                    rs = xs
                for h in tl.static_range(CHUNK):
                    now = at(p, P_KINDS, begun + h, channels, channel, exists)
                    line = at(affine, AFFINE_KINDS, begun + h, channels, channel, exists)
                    current = current_of(xs[h], line, rs[h], len(AFFINE_KINDS), RESIDUAL_STEPS)
                    u = equation.advance(u, o, current, now)
                    o = equation.fire(u, now).to(tl.float32)
            tl.debug_barrier()
        place = places_of(begin, offsets, block, channel, channels, places, SAMPLES, ROWS, LAST)
        g_u = tl.zeros([ROWS, COLUMNS], tl.float32)
        g_o = tl.zeros([ROWS, COLUMNS], tl.float32)
        x_sum = tl.zeros([ROWS, COLUMNS], tl.float32)
        residual_sum = tl.zeros([ROWS, COLUMNS], tl.float32)
        for back in range(CHUNKS):
            chunk = CHUNKS - 1 - back
            start = chunk * CHUNK
            xs = steps_of(x + begin, start, stride, offsets, inside, X_STEPS, CHUNK)
            if OUT:
                gs = steps_of(out_gradient + begin, start, stride, offsets, inside, STEPS, CHUNK)
            if RESIDUAL_STEPS > 0:
                rs = steps_of(
                    residual + begin, start, stride, offsets, inside, RESIDUAL_STEPS, CHUNK
                )
            else:
                rs = xs
            if CHUNKS > 1:
                u = tl.load(scratch + chunk * (2 * ROWS * COLUMNS) + corner)
                o = tl.load(scratch + (2 * chunk + 1) * (ROWS * COLUMNS) + corner)
            us = (u,)
            os = (o,)
            for k in tl.static_range(CHUNK):
                now = at(p, P_KINDS, start + k, channels, channel, exists)
                line = at(affine, AFFINE_KINDS, start + k, channels, channel, exists)
                current = current_of(xs[k], line, rs[k], len(AFFINE_KINDS), RESIDUAL_STEPS)
                us = us + (equation.advance(us[k], os[k], current, now),)
                os = os + (equation.fire(us[k + 1], now).to(tl.float32),)
            for k in tl.static_range(CHUNK - 1, -1, -1):
                t = start + k
                target = begin + t * stride + offsets
                now = at(p, P_KINDS, t, channels, channel, exists)
                line = at(affine, AFFINE_KINDS, t, channels, channel, exists)
                current = current_of(xs[k], line, rs[k], len(AFFINE_KINDS), RESIDUAL_STEPS)
                soft = at(s, S_KINDS, t, channels, channel, exists)
                excess_in = equation.excess_partials(us[k + 1], now)
                g_spike = g_o
                if OUT:
                    g_out = gs[k].to(tl.float32)
                    g_spike += g_out * now[EMITTED] if EMITTED >= 0 else g_out
                g_v = g_spike * slope_of(
                    equation.excess(us[k + 1], now), soft, word, t, place, equation, SAMPLES
                )
                g_u += g_v * excess_in[0]
                if KEEP == STEPS:
                    g_u += tl.load(membrane_gradient + target, mask=inside, other=0.0)
                elif KEEP > 0 and k == CHUNK - 1:
                    last = inside & (back == 0)
                    g_u += tl.load(membrane_gradient + begin + offsets, mask=last, other=0.0)
                if MEAN:
                    # Only where there is a membrane: the sums count on zeros elsewhere.
                    g_u += tl.where(inside, tl.load(mean_gradient + t), 0.0)
                partial = equation.advance_partials(us[k], os[k], current, now)
                g = g_u * partial[2]
                if SUM:
                    if AFFINE_SLOTS[0] >= 0:
                        product = g * (xs[k].to(tl.float32) - center)
                        step = k if AFFINE_KINDS[0] == STEP else 0
                        totals = add_to(totals, AFFINE_SLOTS[0] + step, product)
                        totals = add_to(totals, AFFINE_SLOTS[1] + step, g)
                    for field in tl.static_range(len(P_KINDS)):
                        if P_SLOTS[field] >= 0:
                            share = g_u * partial[3 + field]
                            if field == THRESHOLD:
                                share += g_v * excess_in[1]
                            if OUT and field == EMITTED:
                                share += g_out * os[k + 1]
                            totals = add_to(
                                totals, P_SLOTS[field] + (k if P_KINDS[field] == STEP else 0), share
                            )
                if WRITE:
                    x_part = g
                    if len(AFFINE_KINDS) > 0:
                        x_part = g * line[0]
                    if X_STEPS == 1 and STEPS > 1:
                        x_sum += x_part
                    else:
                        if COEFFICIENTS:
                            x_part += slope * (xs[k].to(tl.float32) - center) + constant
                        tl.store(
                            x_gradient + target, x_part.to(x_gradient.dtype.element_ty), mask=inside
                        )
                    if RESIDUAL_STEPS == 1 and STEPS > 1:
                        residual_sum += g
                    elif RESIDUAL_STEPS > 0:
                        tl.store(
                            residual_gradient + target,
                            g.to(residual_gradient.dtype.element_ty),
                            mask=inside,
                        )
                g_o = tl.zeros_like(g_o) if DETACH else g_u * partial[1]
                g_u = g_u * partial[0]
        if WRITE:
            here = begin + offsets
            if X_STEPS == 1 and STEPS > 1:
                if COEFFICIENTS:
                    value = tl.load(x + here, mask=inside, other=0.0).to(tl.float32)
                    x_sum += slope * (value - center) + constant
                tl.store(x_gradient + here, x_sum.to(x_gradient.dtype.element_ty), mask=inside)
            if RESIDUAL_STEPS == 1 and STEPS > 1:
                tl.store(
                    residual_gradient + here,
                    residual_sum.to(residual_gradient.dtype.element_ty),
                    mask=inside,
                )
            if STATE:
                tl.store(u_gradient + here, g_u, mask=inside)
                tl.store(o_gradient + here, g_o.to(o_gradient.dtype.element_ty), mask=inside)
    if SUM:
        target = partials + program // columns * SLOTS * channels + channel
        for slot in tl.static_range(SLOTS):
            tl.store(target + slot * channels, per_channel(totals[slot], LAST), mask=exists)
