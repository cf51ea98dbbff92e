"""The kernels of pooling: channels-last images in tiles of places by channels."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def places_of(places, channels, blocks, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """A program's image, places in it and channels, and which exist; no tile spans two images."""
    program = tl.program_id(0)
    block = program // columns
    place = block % blocks * ROWS + tl.arange(0, ROWS)[:, None]
    channel = program % columns * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    inside = (place < places) & (channel < channels)
    return (block // blocks).to(tl.int64), place, channel, inside


@triton.jit
def within(y, x, height, width):
    """Which pixels an image has."""
    return (y >= 0) & (y < height) & (x >= 0) & (x < width)


@triton.jit
def pool_kernel(
    x,
    out,
    winners,
    height,
    width,
    out_height,
    out_width,
    channels,
    blocks,
    columns,
    MAXIMUM: tl.constexpr,
    KERNEL: tl.constexpr,
    STRIDE: tl.constexpr,
    PADDING: tl.constexpr,
    AT_ONCE: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Every window's mean, or its maximum and the number of the pixel that is it.

    As torch has it: of equal pixels the first wins, and a NaN over every number.
    """
    AREA: tl.constexpr = KERNEL[0] * KERNEL[1]
    OUTSIDE: tl.constexpr = float("-inf") if MAXIMUM else 0.0
    image, place, channel, inside = places_of(
        out_height * out_width, channels, blocks, columns, ROWS, COLUMNS
    )
    top = place // out_width * STRIDE[0] - PADDING[0]
    left = place % out_width * STRIDE[1] - PADDING[1]
    corner = (image * height * width + top * width + left) * channels + channel
    line = tl.full((), 1, tl.int64) * width
    result = tl.full([ROWS, COLUMNS], OUTSIDE, tl.float32)
    first = tl.maximum(-top, 0) * KERNEL[1] + tl.maximum(-left, 0)
    winner = tl.zeros([ROWS, COLUMNS], tl.int32) + first
    for start in range(0, AREA, AT_ONCE):
        values = ()
        for k in tl.static_range(AT_ONCE):
            dy = (start + k) // KERNEL[1]
            dx = (start + k) % KERNEL[1]
            there = inside & within(top + dy, left + dx, height, width)
            source = x + corner + (line * dy + dx) * channels
            values = values + (tl.load(source, mask=there, other=OUTSIDE),)
        for k in tl.static_range(AT_ONCE):
            value = values[k].to(tl.float32)
            if MAXIMUM:
                better = (value > result) | (value != value)
                result = tl.where(better, value, result)
                winner = tl.where(better, start + k, winner)
            else:
                result += value
    if not MAXIMUM:
        result *= 1.0 / AREA
    target = (image * out_height * out_width + place) * channels + channel
    tl.store(out + target, result.to(out.dtype.element_ty), mask=inside)
    if MAXIMUM:
        tl.store(winners + target, winner.to(tl.uint8), mask=inside)


@triton.jit
def pool_backward_kernel(
    grad,
    winners,
    out,
    height,
    width,
    grad_height,
    grad_width,
    channels,
    down,
    across,
    blocks,
    columns,
    MAXIMUM: tl.constexpr,
    KERNEL: tl.constexpr,
    STRIDE: tl.constexpr,
    PADDING: tl.constexpr,
    WINDOWS: tl.constexpr,
    AT_ONCE: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Every pixel's sum over the windows that contain it (and, for a maximum, chose it).

    A place is a patch of as many pixels as the stride: `WINDOWS` windows down and across meet
    it, read once for all its pixels.
    """
    PIXELS: tl.constexpr = STRIDE[0] * STRIDE[1]
    image, place, channel, inside = places_of(
        down * across, channels, blocks, columns, ROWS, COLUMNS
    )
    row = place // across
    column = place % across
    for start in range(0, PIXELS, AT_ONCE):
        totals = ()
        for k in tl.static_range(AT_ONCE):
            totals = totals + (tl.zeros([ROWS, COLUMNS], tl.float32),)
        for window in tl.static_range(WINDOWS[0] * WINDOWS[1]):
            up = window // WINDOWS[1]
            back = window % WINDOWS[1]
            there = inside & within(row - up, column - back, grad_height, grad_width)
            source = image * grad_height * grad_width + (row - up) * grad_width + column - back
            source = source * channels + channel
            value = tl.load(grad + source, mask=there, other=0.0).to(tl.float32)
            if MAXIMUM:
                winner = tl.load(winners + source, mask=there, other=0).to(tl.int32)
            sums = ()
            for k in tl.static_range(AT_ONCE):
                dy = (start + k) // STRIDE[1] + up * STRIDE[0]
                dx = (start + k) % STRIDE[1] + back * STRIDE[1]
                takes = (dy < KERNEL[0]) & (dx < KERNEL[1])
                if MAXIMUM:
                    takes = (winner == dy * KERNEL[1] + dx) & takes
                sums = sums + (totals[k] + tl.where(takes, value, 0.0),)
            totals = sums
        for k in tl.static_range(AT_ONCE):
            y = row * STRIDE[0] + (start + k) // STRIDE[1] - PADDING[0]
            x = column * STRIDE[1] + (start + k) % STRIDE[1] - PADDING[1]
            there = inside & within(y, x, height, width)
            target = (image * height * width + y * width + x) * channels + channel
            result = totals[k]
            if not MAXIMUM:
                result *= 1.0 / (KERNEL[0] * KERNEL[1])
            tl.store(out + target, result.to(out.dtype.element_ty), mask=there)
