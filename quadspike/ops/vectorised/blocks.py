"""Activations cut into blocks `[m, w]` that stay in the cache while all steps go over them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from quadspike.ops import layout

WIDTH = 1024
"""Constants per channel are laid out over about so many elements: rows long enough for torch's
vectorised loops, few enough to stay in the nearest cache."""
GRAIN = 32768
"""Elements below which torch gives a thread no work of its own."""


class Block(NamedTuple):
    """`m` rows of `w` elements from `start` on."""

    start: int
    m: int
    w: int

    def of(self, flat: Tensor) -> Tensor:
        """The block's part of one step, `[m, w]`."""
        return flat[self.start : self.start + self.m * self.w].view(self.m, self.w)


class Cut(NamedTuple):
    """One step of activations: `elements` in memory order, the channels again every `period`."""

    elements: int
    channels: int
    space: int
    """Neighbours of the same channel: 1 where channels come last."""

    @classmethod
    def of(cls, x: Tensor, samples: int) -> Cut:
        places, channels = layout.space_of(x), x.shape[1]
        space = 1 if layout.has_channels_last(x) else places
        return cls(samples * channels * places, channels, space)

    @property
    def period(self) -> int:
        return self.channels * self.space

    @property
    def width(self) -> int:
        return self.period * max(1, WIDTH // self.period)

    def blocks(self, size: int) -> Iterator[Block]:
        """Blocks of about `size` elements; the last is one row of what does not fill a row."""
        rows = self.elements // self.width
        at_once = max(1, size // self.width)
        for row in range(0, rows, at_once):
            yield Block(row * self.width, min(at_once, rows - row), self.width)
        if self.elements % self.width:
            yield Block(rows * self.width, 1, self.elements % self.width)

    def tile(self, values: Tensor, dtype: torch.dtype) -> Tensor:
        """Values `[C]` laid out over a row of a block; one for the layer as it is."""
        if values.ndim == 0:
            return values.to(dtype)
        repeated = values.to(dtype)[None, :, None].expand(
            self.width // self.period, -1, self.space
        )
        return repeated.reshape(-1)

    def per_channel(self, rows: Tensor) -> Tensor:
        """Sums `[n, C]` of rows `[n, w]`."""
        return rows.view(-1, self.width // self.period, self.channels, self.space).sum((1, 3))


def size_of_block(steps: int, tensors: int) -> int:
    """Elements of a block of which `tensors` tensors of every step are in use."""
    share = max(GRAIN // 8, GRAIN * 16 // (steps * tensors + 8))
    return min(GRAIN, share) if torch.get_num_threads() == 1 else GRAIN * torch.get_num_threads()


def flat(x: Tensor, steps: int) -> Tensor:
    """`[steps * B, C, ...]` as `[steps, elements]` in memory order, without a copy."""
    ordered = x.movedim(1, -1) if layout.has_channels_last(x) else x
    return ordered.view(steps, -1)


class Scratch:
    """Tensors for what is not kept, made once for the largest block and used by all."""

    def __init__(self, count: int, size: int, dtype: torch.dtype) -> None:
        self._memory = torch.empty(count, size, dtype=dtype)
        self._cut: dict[tuple[int, int], list[Tensor]] = {}

    def of(self, block: Block) -> list[Tensor]:
        """All of them in the block's shape."""
        shape = (block.m, block.w)
        if shape not in self._cut:
            used = self._memory[:, : block.m * block.w].unbind(0)
            self._cut[shape] = [one.view(shape) for one in used]
        return self._cut[shape]
