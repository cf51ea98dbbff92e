"""Which part of an image a network sees, and at what size.

Images are uint8 `[C, H, W]`; a box is (left, top, right, bottom) in whole pixels. Resizing is
bilinear with antialiasing, the filter of Pillow's `BILINEAR` and equal to it within one grey
level; torch's own kernel for bytes is several times faster.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor

from quadspike.errors import QuadspikeError

Box = tuple[int, int, int, int]

SCALE = (0.08, 1.0)
"""Share of the image's area that a random-resized crop takes."""
RATIO = (3 / 4, 4 / 3)
"""Width over height of a random-resized crop."""
TRIES = 10
"""How often a random-resized crop is drawn anew before it gives up."""
_MOST_PIXELS = 2**26


def resize(image: Tensor, width: int, height: int) -> Tensor:
    """The whole image at that size, whatever its aspect."""
    # A batch of one whose strides say channels last, or torch takes a slower kernel.
    batch = image.permute(1, 2, 0)[None].permute(0, 3, 1, 2)
    return F.interpolate(batch, (height, width), mode="bilinear", antialias=True)[0]


def squash(image: Tensor, size: int) -> Tensor:
    """`size` x `size`, the aspect given up: what the paper does.

    >>> import torch
    >>> squash(torch.zeros(3, 375, 500, dtype=torch.uint8), 256).shape
    torch.Size([3, 256, 256])
    """
    return resize(image, size, size)


def shorter_side(image: Tensor, size: int) -> Tensor:
    """The shorter side at `size`, the aspect kept and the longer side rounded down.

    >>> import torch
    >>> shorter_side(torch.zeros(3, 375, 500, dtype=torch.uint8), 256).shape
    torch.Size([3, 256, 341])
    """
    height, width = image.shape[-2:]
    shorter = min(width, height)
    wide, high = width * size // shorter, height * size // shorter
    if wide * high > _MOST_PIXELS:
        raise QuadspikeError(
            f"a strip of {width} x {height} pixels would become {wide} x {high} with its "
            f"shorter side at {size}; cut it before"
        )
    return resize(image, wide, high)


def crop(image: Tensor, box: Box) -> Tensor:
    """The part inside the box, a view."""
    left, top, right, bottom = box
    return image[..., top:bottom, left:right]


def centre_box(width: int, height: int, size: int) -> Box:
    """The box of `size` x `size` in the middle, a half pixel rounded to the even.

    >>> centre_box(341, 256, 224)
    (58, 16, 282, 240)
    """
    left, top = round((width - size) / 2), round((height - size) / 2)
    return left, top, left + size, top + size


def random_crop_box(width: int, height: int, size: int, u: Sequence[float]) -> Box:
    """A box of `size` x `size`, anywhere with equal chance, from two uniforms in [0, 1).

    >>> random_crop_box(256, 256, 224, (0.0, 0.999))
    (0, 32, 224, 256)
    """
    left, top = _place(u[0], width - size), _place(u[1], height - size)
    return left, top, left + size, top + size


def random_resized_crop_box(width: int, height: int, u: Sequence[float]) -> Box:
    """A box of random area (`SCALE`), aspect (`RATIO`, uniform in its logarithm) and place.

    Every try uses four of the uniforms in [0, 1): area, aspect, left, top. When no try fits
    into the image, the largest centred box whose aspect is allowed; 40 make the usual ten.

    >>> random_resized_crop_box(500, 375, (0.2, 0.5, 0.0, 0.999))
    (0, 153, 222, 375)
    """
    for area_u, ratio_u, left_u, top_u in zip(*(u[place::4] for place in range(4)), strict=False):
        area = width * height * (SCALE[0] + area_u * (SCALE[1] - SCALE[0]))
        ratio = RATIO[0] * math.exp(ratio_u * math.log(RATIO[1] / RATIO[0]))
        wide, high = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < wide <= width and 0 < high <= height:
            left, top = _place(left_u, width - wide), _place(top_u, height - high)
            return left, top, left + wide, top + high
    wide = max(1, min(width, round(height * RATIO[1])))
    high = max(1, min(height, round(width / RATIO[0])))
    left, top = (width - wide) // 2, (height - high) // 2
    return left, top, left + wide, top + high


def _place(u: float, room: int) -> int:
    """A whole number from 0 to `room`, both included."""
    return min(int(u * (room + 1)), room)
