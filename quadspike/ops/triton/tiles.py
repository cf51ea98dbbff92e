"""How the work is cut: fixed by shape and type alone, so equal calls give equal bits."""

from __future__ import annotations

from typing import NamedTuple

LONGEST_CHUNK = 16
"""Steps whose membranes stay in registers; longer times are cut into chunks."""

AT_ONCE = 8
"""Tiles that a program of the statistics asks for before it uses the first."""


class Setting(NamedTuple):
    """How a kernel cuts its work."""

    bytes: int
    """Of x, read by one thread at a time: 16 are one instruction."""
    warps: int
    columns: int
    """Channels side by side in a tile, at most."""
    programs: int
    """Of a reduction: as many as run at once on the 132 multiprocessors of an H100 or H200."""
    stages: int = 1
    """Turns of a reduction's loop whose tiles are on their way from memory at once."""


SETTINGS: dict[str, dict[int, Setting]] = {
    "statistics": {1: Setting(32, 4, 64, 4 * 132)},
    "apply": {1: Setting(16, 4, 256, 4 * 132)},
    "pool": {1: Setting(16, 4, 64, 4 * 132)},
    "sums": {
        12: Setting(16, 4, 64, 3 * 132, stages=3),
        16: Setting(16, 4, 64, 2 * 132, stages=3),
        24: Setting(8, 4, 64, 3 * 132, stages=3),
        48: Setting(4, 4, 64, 3 * 132),
    },
    "input": {
        6: Setting(16, 4, 128, 3 * 132),
        8: Setting(8, 2, 128, 3 * 132),
        12: Setting(8, 4, 64, 3 * 132),
        48: Setting(4, 4, 64, 3 * 132),
    },
}
"""By kernel, and by the number of tiles read at once up to which a setting is for."""


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
    stages: int
    """As in `Setting`."""


def chunk_of(steps: int, whole: bool) -> int:
    """How many steps to keep in registers: a divisor of all, as even as it can be."""
    if whole or steps <= LONGEST_CHUNK:
        return steps
    divisors = [k for k in range(1, 2 * LONGEST_CHUNK + 1) if steps % k == 0]
    fitting = [k for k in divisors if k <= LONGEST_CHUNK]
    return fitting[-1] if 2 * fitting[-1] >= LONGEST_CHUNK else divisors[-1]


def cut(
    kernel: str, rows: int, channels: int, space: int, itemsize: int, held: int, persistent: bool
) -> Cut:
    """Tiles for a kernel that holds `held` of them at once.

    `persistent` ones walk over several with a fixed set of programs.
    """
    settings = SETTINGS[kernel]
    setting = settings[min((k for k in settings if k >= held), default=max(settings))]
    area = 32 * setting.warps * max(1, setting.bytes // itemsize)
    width = channels if space == 1 else space
    columns = min(_power(width), setting.columns if space == 1 else area)
    height = min(max(1, area // columns), _power(rows))
    blocks = -(-rows // height)
    if space == 1:
        across = -(-channels // columns)
    else:
        across = channels
        blocks *= -(-space // columns)
    programs = min(blocks, max(1, setting.programs // across)) if persistent else blocks
    tile = Tile(height, columns, setting.warps)
    return Cut(tile, blocks, across, programs, setting.stages)


def _power(n: int) -> int:
    return 1 << max(0, n - 1).bit_length()
