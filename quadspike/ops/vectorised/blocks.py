"""Activations cut into blocks `[m, w]` that stay in the cache while all steps go over them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from quadspike.ops import layout

WIDTH = 1024
"""Constants per channel are laid out over about so many elements: rows long enough for torch's
vectorised loops, few enough to stay in the nearest cache."""
SIZE = 2**19
"""Elements of a block and its steps for each thread: many enough that what a call of torch costs
is little, few enough for the cache."""
LARGEST, SMALLEST = 2**17, 2**15
"""Elements of a block for each thread; with fewer torch gives a thread no work of its own."""


class Cut(NamedTuple):
    """One step of activations: `elements` in memory order, the channels again every `period`."""

    elements: int
    channels: int
    space: int
    """Neighbours of the same channel: 1 where channels come last."""
    steps: int

    @classmethod
    def of(cls, x: Tensor, samples: int, steps: int = 1) -> Cut:
        places, channels = layout.space_of(x), x.shape[1]
        space = 1 if layout.has_channels_last(x) else places
        return cls(samples * channels * places, channels, space, steps)

    @property
    def period(self) -> int:
        return self.channels * self.space

    @property
    def width(self) -> int:
        return self.period * max(1, WIDTH // self.period)

    @property
    def rows(self) -> int:
        """Rows of a block."""
        size = max(SMALLEST, min(LARGEST, SIZE // self.steps))
        return max(1, size * torch.get_num_threads() // self.width)

    def blocks(self, step: Tensor) -> list[Tensor]:
        """All blocks of one step; the last is what does not fill a row."""
        whole = self.elements - self.elements % self.width
        cut = list(step[:whole].view(-1, self.width).split(self.rows)) if whole else []
        return [*cut, step[whole:].view(1, -1)] if whole < self.elements else cut

    def tile(self, values: Tensor, dtype: torch.dtype) -> Tensor:
        """Values `[C]` laid out over a row of a block; one for the layer as it is."""
        if values.ndim == 0:
            return values.to(dtype)
        shape = (self.width // self.period, -1, self.space)
        return values.to(dtype)[None, :, None].expand(shape).reshape(-1)

    def per_channel(self, rows: Tensor) -> Tensor:
        """Sums `[n, C]` of rows `[n, w]`."""
        parts = rows.view(-1, self.width // self.period, self.channels, self.space)
        return parts.sum((1, 3))


def flat(x: Tensor, elements: int) -> Tensor:
    """`[N, C, ...]` as `[steps, elements]` in memory order, without a copy."""
    ordered = x.movedim(1, -1) if layout.has_channels_last(x) else x
    return ordered.view(-1, elements)


class Blocks:
    """A tensor `[steps * B, C, ...]` by step and block; a single step serves all."""

    def __init__(self, x: Tensor, cut: Cut) -> None:
        self._blocks = [cut.blocks(step) for step in flat(x, cut.elements)]
        self.steps = len(self._blocks)
        self.count = len(self._blocks[0]) if self._blocks else 0
        """Blocks of a step."""

    def at(self, t: int, index: int) -> Tensor:
        return self._blocks[min(t, self.steps - 1)][index]


_LARGE = 2**25 - 2**16


@cache
def keep_pages() -> None:
    """Let the C library keep the memory of freed activations, once for the process.

    glibc hands idle memory back to the system when there is more of it than twice the largest
    block freed so far, at most 64 MiB, and takes it again page by page at the next allocation:
    without this a sixth of a training step. Elsewhere it does nothing.
    """
    torch.empty(_LARGE, dtype=torch.uint8)


class _Kept(threading.local):
    """The last call's memory: fresh pages cost as much as a pass over them."""

    memory = torch.empty(0, dtype=torch.uint8)


_kept = _Kept()


class Scratch:
    """Tensors for what is not kept, made once for the largest block and used by all."""

    def __init__(self, count: int, largest: Tensor, dtype: torch.dtype) -> None:
        size = count * largest.numel() * dtype.itemsize
        if _kept.memory.numel() < size:
            _kept.memory = torch.empty(size, dtype=torch.uint8)
        self._memory = _kept.memory[:size].view(dtype).view(count, -1)
        self._cut: dict[torch.Size, Sequence[Tensor]] = {}

    def like(self, block: Tensor) -> Sequence[Tensor]:
        """All of them in the block's shape."""
        if block.shape not in self._cut:
            used = self._memory[:, : block.numel()]
            self._cut[block.shape] = [one.view(block.shape) for one in used]
        return self._cut[block.shape]
