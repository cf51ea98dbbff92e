"""How the work is cut: fixed by shape and type alone, so equal calls give equal bits."""

from __future__ import annotations

from typing import NamedTuple

PROGRAMS = 528
"""Programs of a reduction: four for each of the 132 multiprocessors of an H100 or H200."""

LONGEST_CHUNK = 8
"""Steps whose membranes stay in registers; longer times are cut into chunks."""

COLUMNS = 64
"""Channels (or places) side by side in a tile, at most."""

BYTES = {"statistics": 16, "apply": 32, "sums": 16, "input": 16}
"""Bytes of x that one thread reads at a time, by kernel: 16 are one instruction."""

WARPS = {"statistics": 4, "apply": 4, "sums": 4, "input": 4}


class Tile(NamedTuple):
    """A tile's rows and columns, and the warps that share it."""

    rows: int
    columns: int
    warps: int


class Cut(NamedTuple):
    """A tensor `[steps, rows, channels, space]` cut into tiles."""

    tile: Tile
    blocks: int
    """Tiles of one column of programs."""
    columns: int
    programs: int
    """Programs of one column."""


def chunk_of(steps: int, whole: bool) -> int:
    """How many steps to keep in registers: a divisor of all, as even as it can be."""
    if whole or steps <= LONGEST_CHUNK:
        return steps
    divisors = [k for k in range(1, 2 * LONGEST_CHUNK + 1) if steps % k == 0]
    fitting = [k for k in divisors if k <= LONGEST_CHUNK]
    return fitting[-1] if 2 * fitting[-1] >= LONGEST_CHUNK else divisors[-1]


def cut(
    kernel: str, rows: int, channels: int, space: int, itemsize: int, chunk: int, persistent: bool
) -> Cut:
    """Tiles for a kernel; `persistent` ones walk over several with a fixed set of programs."""
    warps = WARPS[kernel]
    each = max(1, BYTES[kernel] // itemsize)
    if chunk > 4:  # leave registers for the membranes
        each = max(1, each // 2)
    area = 32 * warps * each
    width = channels if space == 1 else space
    columns = min(_power(width), COLUMNS if space == 1 else area)
    height = min(max(1, area // columns), _power(rows))
    blocks = -(-rows // height)
    if space == 1:
        across = -(-channels // columns)
    else:
        across = channels
        blocks *= -(-space // columns)
    programs = min(blocks, max(1, PROGRAMS // across)) if persistent else blocks
    return Cut(Tile(height, columns, warps), blocks, across, programs)


def _power(n: int) -> int:
    return 1 << max(0, n - 1).bit_length()
