"""Operations that send each byte to another: a table of 256 per sample and channel.

Tables are uint8 `[B, 1 or C, 256]`, equal to those of Pillow's ImageOps and ImageEnhance.
"""

from __future__ import annotations

import torch
from torch import Tensor

from quadspike.data.augment.colour import blend


def look_up(x: Tensor, table: Tensor) -> Tensor:
    """Every byte of `[B, C, H, W]` replaced by its entry in the table.

    >>> x = torch.tensor([3, 250], dtype=torch.uint8).view(1, 1, 1, 2)
    >>> look_up(x, invert_table(x)).flatten().tolist()
    [252, 5]
    """
    table = table.expand(x.shape[0], x.shape[1], 256)
    return table.gather(2, x.flatten(2).long()).view_as(x)


def ramp(like: Tensor) -> Tensor:
    """The table that changes nothing, `[1, 1, 256]`, on the device of `like`."""
    return torch.arange(256, device=like.device, dtype=torch.uint8).view(1, 1, 256)


def invert_table(like: Tensor) -> Tensor:
    """Black for white, on the device of `like`."""
    return 255 - ramp(like)


def solarize_table(threshold: Tensor) -> Tensor:
    """Bytes from a threshold on inverted, one threshold a sample."""
    value = ramp(threshold)
    return torch.where(value < threshold.view(-1, 1, 1), value, 255 - value)


def posterize_table(bits: Tensor) -> Tensor:
    """Only the highest bits (1 to 8) kept, one number of them a sample."""
    dropped = 8 - bits.view(-1, 1, 1).int()
    return (ramp(bits).int() >> dropped << dropped).to(torch.uint8)


def brightness_table(factor: Tensor) -> Tensor:
    """Between black and the image, one factor a sample."""
    value = ramp(factor)
    return blend(torch.zeros_like(value), value, factor.view(-1, 1, 1))


def contrast_table(greys: Tensor, factor: Tensor) -> Tensor:
    """Between the mean of the greys `[B, 1, H, W]` and the image, one factor a sample."""
    pixels = greys.flatten(1)
    mean = (2 * pixels.sum(1) + pixels.shape[1]) // (2 * pixels.shape[1])
    return blend(mean.view(-1, 1, 1), ramp(factor), factor.view(-1, 1, 1))


def autocontrast_table(x: Tensor) -> Tensor:
    """Each channel stretched from 0 to 255; a flat one stays as it is."""
    low, high = (value[..., None].double() for value in torch.aminmax(x.flatten(2), dim=2))
    value = ramp(x)
    # Float64 and in Pillow's order, since it cuts the result to whole numbers: 84.999... is 84.
    # A tensor over a tensor: torch takes a number over a tensor as a rounded reciprocal.
    scale = torch.full_like(high, 255) / (high - low).clamp(min=1)
    stretched = (value * scale + -low * scale).clamp_(0, 255).to(torch.uint8)
    return torch.where(high > low, stretched, value)


def equalize_table(x: Tensor) -> Tensor:
    """All bytes of a channel about equally frequent; one with too few bytes stays as it is."""
    values = x.flatten(2).long()
    counts = torch.zeros(*values.shape[:2], 256, device=x.device, dtype=torch.int32)
    counts.scatter_add_(2, values, torch.ones_like(values, dtype=torch.int32))
    greatest = values.amax(2, keepdim=True)
    step = (values.shape[2] - counts.gather(2, greatest)) // 255
    before = counts.cumsum(2, dtype=torch.int32) - counts
    spread = (step // 2 + before) // step.clamp(min=1)
    return torch.where(step > 0, spread.clamp(max=255).to(torch.uint8), ramp(x))
