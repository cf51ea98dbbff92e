"""Frames made smaller, with the same bits on every device.

Each axis is one matrix of weights that are whole multiples of 2^-16 and sum to one. Their
products with counts are exact in float64, whatever the order of summation, so that a CPU and
a GPU agree to the last bit, which library interpolation does not promise.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

RESIZES = ("bilinear", "area", "nearest")
_UNIT = 2.0**-16


def resize_frames(frames: Tensor, size: int, resize: str) -> Tensor:
    """Frames `[..., H, W]` to `[..., size, size]`.

    "bilinear" weighs neighbours by a triangle that widens with the shrinking (antialiased:
    every event counts; half-pixel centres); "area" averages what each new pixel covers; both
    give float32 in events per old pixel. "nearest" picks one old pixel,
    floor(i * old / new), and keeps the type.
    """
    height, width = frames.shape[-2:]
    if resize == "nearest":
        rows = torch.arange(size, device=frames.device) * height // size
        columns = torch.arange(size, device=frames.device) * width // size
        return frames[..., rows[:, None], columns]
    down = _weights(height, size, resize).to(frames.device)
    across = _weights(width, size, resize).to(frames.device)
    return (down @ frames.to(torch.float64) @ across.T).to(torch.float32)


@lru_cache(maxsize=32)
def _weights(old: int, new: int, resize: str) -> Tensor:
    """`[new, old]`: what each old pixel gives to each new one."""
    scale = old / new
    left = torch.arange(old, dtype=torch.float64)
    if resize == "area":
        start = torch.arange(new, dtype=torch.float64)[:, None] * scale
        overlap = torch.minimum(left + 1, start + scale) - torch.maximum(left, start)
        weights = overlap.clamp(min=0)
    else:
        centre = (torch.arange(new, dtype=torch.float64)[:, None] + 0.5) * scale
        reach = max(scale, 1.0)
        weights = (1 - (left + 0.5 - centre).abs() / reach).clamp(min=0)
    return whole_weights(weights)


def whole_weights(weights: Tensor) -> Tensor:
    """Rows of whole multiples of 2^-16 that sum to one; the largest takes what rounding left."""
    units = torch.round(weights / weights.sum(1, keepdim=True) / _UNIT)
    rest = 1 / _UNIT - units.sum(1, keepdim=True)
    return units.scatter_add(1, units.argmax(1, keepdim=True), rest) * _UNIT
