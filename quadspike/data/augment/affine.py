"""Shear, shift and turn: one gather for a batch, every sample by its own matrix.

The arithmetic is Pillow's for `Image.transform(..., Image.AFFINE)` with nearest-neighbour
sampling, 16.16 fixed point, so the pixels are the same, all of them. What comes from
outside the image is grey, 128.
"""

from __future__ import annotations

import torch
from torch import Tensor

FILL = 128


def affine(
    x: Tensor,
    *,
    degrees: Tensor | None = None,
    shear_x: Tensor | None = None,
    shear_y: Tensor | None = None,
    right: Tensor | None = None,
    down: Tensor | None = None,
) -> Tensor:
    """One of the five per sample of `[B, C, H, W]`; a sample's other amounts must be 0.

    Turned counterclockwise about the centre; each row shifted by `shear_x` times its height below
    the top, each column by `shear_y` times its distance from the left; all of it shifted left by
    `right` pixels, up by `down`, in whole ones.

    Where output pixel (column, row) comes from is, in source coordinates,
    (cos column + (shear_x - sin) row + ..., (shear_y + sin) column + cos row + ...).

    >>> row = torch.tensor([1, 2, 3], dtype=torch.uint8).view(1, 1, 1, 3)
    >>> affine(row, right=torch.tensor([1.2])).flatten().tolist()
    [2, 3, 128]
    """
    zero = torch.zeros(len(x), device=x.device)
    degrees, shear_x, shear_y, right, down = (
        zero if amount is None else amount for amount in (degrees, shear_x, shear_y, right, down)
    )
    height, width = x.shape[-2:]
    angle = torch.deg2rad(degrees.double())
    cos, sin = torch.cos(angle), torch.sin(angle)
    to_x = cos, shear_x - sin
    to_y = sin + shear_y, cos
    # The centre stays where it is; whole pixels, so that half a step is never split.
    start_x = torch.floor(right.double() + 0.5) + (width - cos * width + sin * height) / 2
    start_y = torch.floor(down.double() + 0.5) + (height - sin * width - cos * height) / 2
    column = _source(to_x, start_x, height, width)
    row = _source(to_y, start_y, height, width)
    inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
    place = (row.clamp(0, height - 1) * width + column.clamp(0, width - 1)).long()
    planes = x.flatten(2)
    moved = planes.gather(2, place[:, None].expand(-1, planes.shape[1], -1))
    return torch.where(inside[:, None], moved, FILL).view_as(x)


def _source(step: tuple[Tensor, Tensor], start: Tensor, height: int, width: int) -> Tensor:
    """One source coordinate of every output pixel, `[B, H * W]`, whole."""
    along, across = step
    columns = torch.arange(width, device=start.device, dtype=torch.int32)
    rows = torch.arange(height, device=start.device, dtype=torch.int32)[:, None]
    first = _fixed(start + (along + across) / 2)
    place = first + _fixed(along) * columns + _fixed(across) * rows
    return (place >> 16).flatten(1)


def _fixed(value: Tensor) -> Tensor:
    """16.16 fixed point, `[B, 1, 1]`."""
    return torch.floor(value * 65536 + 0.5).int().view(-1, 1, 1)
