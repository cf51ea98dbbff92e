"""Shifts by parts of a pixel, for pictures too small to lose a whole one."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from quadspike.data.loader import Draw
from quadspike.errors import QuadspikeError


@dataclass(frozen=True)
class RandomShift:
    """Shift bytes by up to `most` of a pixel along each axis, bilinear, zeros from outside.

    All frames of a clip `[B, T, C, H, W]` are shifted alike.
    """

    most: float = 0.5

    def __post_init__(self) -> None:
        if not 0 < self.most <= 1:
            raise QuadspikeError(f"a shift goes up to 0 < most <= 1 pixels, got {self.most!r}")

    def __call__(self, x: Tensor, draw: Draw) -> Tensor:
        shifts = (2 * draw.uniform(2, "shift") - 1) * self.most
        moved = x.float()
        for axis, shift in zip((-2, -1), shifts.unbind(1), strict=True):
            moved = _blend_with_neighbour(moved, shift.view(-1, *[1] * (x.ndim - 1)), axis)
        return moved.round().to(torch.uint8)


def _blend_with_neighbour(x: Tensor, shift: Tensor, axis: int) -> Tensor:
    """Each pixel mixed with the one before it, or after it where the shift is negative."""
    edge = torch.zeros_like(x.narrow(axis, 0, 1))
    size = x.shape[axis]
    before = torch.cat([edge, x.narrow(axis, 0, size - 1)], axis)
    after = torch.cat([x.narrow(axis, 1, size - 1), edge], axis)
    return torch.lerp(x, torch.where(shift > 0, before, after), shift.abs())
