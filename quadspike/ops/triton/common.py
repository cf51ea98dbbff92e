"""Pieces of every kernel: where a tile lies, constants over time, one step of the neuron.

A tensor is seen as `[steps, rows, channels, space]` in memory; `LAST` (channels last, or no
space) has space 1 and tiles of rows by channels, otherwise a tile is rows by space and has one
channel.
"""

from __future__ import annotations

import triton
import triton.language as tl

LAYER: tl.constexpr = tl.constexpr(1)
CHANNEL: tl.constexpr = tl.constexpr(2)
STEP: tl.constexpr = tl.constexpr(3)


@triton.jit
def columns_of(column, channels, COLUMNS: tl.constexpr, LAST: tl.constexpr):
    """The channels of a program's tiles, and which exist."""
    if LAST:
        channel = column * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    else:
        channel = column
    return channel, channel < channels


@triton.jit
def tile_of(
    block,
    column,
    rows,
    channels,
    space,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    LAST: tl.constexpr,
):
    """Where a tile begins, its places from there, and which exist."""
    row = tl.arange(0, ROWS)[:, None]
    place = tl.arange(0, COLUMNS)[None, :]
    if LAST:
        first_row = block * ROWS
        begin = first_row.to(tl.int64) * channels + column * COLUMNS
        offsets = row * channels + place
        inside = (row < rows - first_row) & (place < channels - column * COLUMNS)
    else:
        across = tl.cdiv(space, COLUMNS)
        first_row = block // across * ROWS
        first = block % across * COLUMNS
        begin = (first_row.to(tl.int64) * channels + column) * space + first
        offsets = row * (channels * space) + place
        inside = (row < rows - first_row) & (place < space - first)
    return begin, offsets, inside


@triton.jit
def values_in(block, rows, space, ROWS: tl.constexpr, COLUMNS: tl.constexpr, LAST: tl.constexpr):
    """How many places of a tile exist in each channel."""
    if LAST:
        count = tl.minimum(tl.maximum(rows - block * ROWS, 0), ROWS)
    else:
        across = tl.cdiv(space, COLUMNS)
        high = tl.minimum(tl.maximum(rows - block // across * ROWS, 0), ROWS)
        count = high * tl.minimum(space - block % across * COLUMNS, COLUMNS)
    return count


@triton.jit
def hold(values, KINDS: tl.constexpr, channel, exists):
    """Constants loaded once; those that change with time stay addresses."""
    held = ()
    for i in tl.static_range(len(KINDS)):
        if KINDS[i] == LAYER:
            held = held + (tl.load(values[i]).to(tl.float32),)
        elif KINDS[i] == CHANNEL:
            held = held + (tl.load(values[i] + channel, mask=exists, other=1.0).to(tl.float32),)
        else:
            held = held + (values[i],)
    return held


@triton.jit
def at(held, KINDS: tl.constexpr, t, channels, channel, exists):
    """The constants of step `t`."""
    now = ()
    for i in tl.static_range(len(KINDS)):
        if KINDS[i] == STEP:
            address = held[i] + t * channels + channel
            now = now + (tl.load(address, mask=exists, other=1.0).to(tl.float32),)
        else:
            now = now + (held[i],)
    return now


@triton.jit
def spike(u, p, equation):
    """Fired or not; a membrane that is no longer a number must not pass as a silent one."""
    return equation.fire(u, p).to(tl.float32) + equation.excess(u, p) * 0.0


@triton.jit
def steps_of(address, t, stride, offsets, inside, HELD: tl.constexpr, CHUNK: tl.constexpr):
    """Tiles of `CHUNK` steps from `t` on, all asked for before any is used."""
    tiles = ()
    for k in tl.static_range(CHUNK):
        if k == 0 or HELD > 1:
            step = t + k if HELD > 1 else 0
            tiles = tiles + (tl.load(address + step * stride + offsets, mask=inside, other=0.0),)
        else:
            tiles = tiles + (tiles[0],)
    return tiles


@triton.jit
def current_of(x, affine, residual, AFFINE: tl.constexpr, RESIDUAL: tl.constexpr):
    """What reaches the membrane."""
    current = x.to(tl.float32)
    if AFFINE > 0:
        current = affine[0] * current + affine[1]
    if RESIDUAL > 0:
        current = current + residual.to(tl.float32)
    return current


@triton.jit
def per_channel(tile, LAST: tl.constexpr):
    """The sum of a tile for each of its channels, `[1, columns]` or a single one."""
    if LAST:
        total = tl.sum(tile, 0, keep_dims=True)
    else:
        total = in_all(tile)
    return total


@triton.jit
def in_all(tile):
    """The sum of a tile."""
    return tl.sum(tl.sum(tile, 1), 0)
