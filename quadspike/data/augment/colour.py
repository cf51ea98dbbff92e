"""Mixtures of an image with a duller one: colour and sharpness as Pillow enhances them.

A factor of 0 gives the duller image, 1 the image itself, more than 1 exaggerates.
"""

from __future__ import annotations

import torch
from torch import Tensor


def colour(x: Tensor, factor: Tensor) -> Tensor:
    """Between the greys of `[B, 3, H, W]` and its colours, one factor a sample."""
    return blend(grey(x), x, factor.view(-1, 1, 1, 1))


def sharpness(x: Tensor, factor: Tensor) -> Tensor:
    """Between the smoothed image and the image, one factor a sample."""
    return blend(smooth(x), x, factor.view(-1, 1, 1, 1))


def blend(dull: Tensor, x: Tensor, factor: Tensor) -> Tensor:
    """dull + factor (x - dull), clipped and cut to whole numbers.

    In float32 with the product rounded before the sum, as Pillow does without fused
    multiply-adds; a build of it that fuses them can differ by 1 where the exact value is whole.

    >>> blend(torch.tensor([100]), torch.tensor([200]), torch.tensor([1.2])).item()
    220
    """
    base = dull.float()
    mixed = base + factor.float() * (x.float() - base)
    return mixed.clamp_(0, 255).to(torch.uint8)


def grey(x: Tensor) -> Tensor:
    """Luma by ITU-R 601-2 in 16-bit fixed point, `[B, 1, H, W]` of uint8."""
    red, green, blue = x.int().unbind(1)
    return ((red * 19595 + green * 38470 + blue * 7471 + 32768) >> 16).to(torch.uint8)[:, None]


def smooth(x: Tensor) -> Tensor:
    """A 3 x 3 mean in which the centre counts five times; the border stays as it is."""
    values = x.short()
    rows = values[..., :-2, :] + values[..., 1:-1, :] + values[..., 2:, :]
    square = rows[..., :-2] + rows[..., 1:-1] + rows[..., 2:]
    total = square + 4 * values[..., 1:-1, 1:-1]
    # total / 13 + 1/2 is at least 1/26 from any whole number: no rounding error can matter.
    smoothed = x.clone()
    smoothed[..., 1:-1, 1:-1] = (total.float() / 13 + 0.5).to(torch.uint8)
    return smoothed
