"""Where the picture stands on the screen: a diamond, round and round."""

from __future__ import annotations

import torch
from torch import Tensor


def diamond(turns: Tensor) -> tuple[Tensor, Tensor]:
    """Right and down on a diamond of radius 1, as parts of a loop: right, down, left, up.

    >>> right, down = diamond(torch.tensor([0.0, 0.125, 0.25, 0.5, 0.75]))
    >>> right.tolist(), down.tolist()
    ([1.0, 0.5, 0.0, -1.0, 0.0], [0.0, 0.5, 1.0, 0.0, -1.0])
    """
    return _triangle(turns), _triangle(turns - 0.25)


def positions(radius: Tensor, start: Tensor, loops: float, steps: int) -> tuple[Tensor, Tensor]:
    """Whole screen pixels right and down, `[B, steps + 1]`: even steps along `loops` loops.

    `radius` in screen pixels and `start` as a part of a loop are `[B]`, float64.
    """
    along = torch.arange(steps + 1, dtype=torch.float64, device=start.device) * (loops / steps)
    right, down = diamond(start[:, None] + along)
    return _whole(right * radius[:, None]), _whole(down * radius[:, None])


def _triangle(turns: Tensor) -> Tensor:
    """1 at whole turns, -1 between, straight in between."""
    part = turns - torch.floor(turns)
    return (4 * part - 2).abs() - 1


def _whole(place: Tensor) -> Tensor:
    return torch.floor(place + 0.5).long()
