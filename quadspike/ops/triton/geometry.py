"""A call's tensors as the kernels see them."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple, cast

import torch
from torch import Tensor

from quadspike.ops import layout
from quadspike.ops.signature import KINDS, Arguments
from quadspike.ops.triton import tiles

FINISHING = 8
"""Channels of one program of the kernels that finish a reduction."""


@cache
def _can_overlap(device: torch.device) -> bool:
    return device.type == "cuda" and torch.cuda.get_device_capability(device) >= (9, 0)


def overlap(x: Tensor) -> dict[str, bool]:
    """Options that let a kernel be launched before the one ahead of it has ended.

    Each waits for that end before it reads, so only the launch itself is hidden.
    """
    return {"OVERLAP": True, "launch_pdl": True} if _can_overlap(x.device) else {"OVERLAP": False}


class Shape(NamedTuple):
    """Memory as `[steps, rows, channels, space]`; space is 1 where channels come last."""

    rows: int
    channels: int
    space: int
    last: bool

    @classmethod
    def of(cls, x: Tensor, samples: int) -> Shape:
        places, channels = layout.space_of(x), x.shape[1]
        if layout.has_channels_last(x):
            return cls(samples * places, channels, 1, True)
        return cls(samples, channels, places, False)

    def cut(self, kernel: str, x: Tensor, held: int, persistent: bool) -> tiles.Cut:
        """The tiles of a kernel that reads `x`."""
        return tiles.cut(kernel, *self[:3], x.element_size(), held, persistent)


def affine_of(a: Arguments, made: Tensor) -> tuple[Tensor, ...]:
    """Scale and shift as given, or as made from a norm's statistics."""
    if a.mode == "none":
        return ()
    if a.mode == "given":
        return cast(Tensor, a.scale), cast(Tensor, a.shift)
    return made[0], made[1]


def affine_kinds(a: Arguments) -> tuple[int, ...]:
    """How scale and shift vary."""
    kind = KINDS.index("s" if a.affine_steps > 1 else "c")
    return (kind, kind) if a.affine_steps else ()
