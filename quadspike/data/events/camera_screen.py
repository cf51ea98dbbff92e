"""The screen before the camera: a grey picture that moves on a diamond, round and round, and what
each pixel of the sensor sees of it.

All in whole numbers, or in float64 sums that are exact, so that every device and every batch
gives the same bits.
"""

from __future__ import annotations

from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

from quadspike.data.events.resize import whole_weights
from quadspike.errors import QuadspikeError

GREY_STEPS = 256
"""Steps of brightness to one of the screen's 256 grey levels."""
BRIGHTEST = 255 * GREY_STEPS


def luma(images: Tensor) -> Tensor:
    """Grey levels `[B, H, W]` of uint8 `[B, 1 or 3, H, W]`: 0.299 R + 0.587 G + 0.114 B, rounded.

    >>> luma(torch.tensor([255, 0, 0], dtype=torch.uint8).view(1, 3, 1, 1)).item()
    76
    """
    if images.dtype != torch.uint8 or images.ndim != 4 or images.shape[1] not in (1, 3):
        raise QuadspikeError(
            "images must be uint8 [B, 1 or 3, H, W], "
            f"got {images.dtype} {list(images.shape)}; frames and floats cannot be shown"
        )
    planes = images.to(torch.int32)
    if images.shape[1] == 1:
        return planes[:, 0]
    red, green, blue = planes.unbind(1)
    return (299 * red + 587 * green + 114 * blue + 500) // 1000


def show(grey: Tensor, size: int) -> Tensor:
    """The picture bicubically scaled to the screen, `[B, size, size]`, in whole grey levels."""
    down = _bicubic(grey.shape[1], size).to(grey.device)
    across = _bicubic(grey.shape[2], size).to(grey.device)
    # Exact: 8 bits times two weights of 17 leaves room in the 53 of float64, whatever the order.
    scaled = down @ grey.to(torch.float64) @ across.T
    return torch.floor(scaled + 0.5).clamp(0, 255).to(torch.int32)


class Scene:
    """Pictures on the screen, and what a sensor sees of them wherever they stand.

    One pixel of the sensor covers `screen / sensor` screen pixels each way and sees their
    mean. Beyond the picture its edge goes on as far as `margin` screen pixels, so that the
    frame of the screen is never seen.
    """

    def __init__(self, images: Tensor, screen: int, sensor: int, margin: int) -> None:
        ratio = screen // sensor
        picture = show(luma(images), screen)
        around = F.pad(picture[:, None].float(), [margin] * 4, mode="replicate")
        # Wherever a pixel may look, `[B, n, n]`; sums below 2^24 are exact in float32.
        sums = F.avg_pool2d(around, ratio, stride=1, divisor_override=1)[:, 0].to(torch.int32)
        area = ratio * ratio
        self._brightness = (sums * GREY_STEPS + area // 2) // area
        self._corner = torch.arange(sensor, device=images.device) * ratio + margin
        self._which = torch.arange(len(images), device=images.device)[:, None, None]

    def seen(self, right: Tensor, down: Tensor) -> Tensor:
        """Brightness `[B, pixels]` with each picture moved by `right` and `down` `[B]`."""
        rows = (self._corner - down[:, None])[:, :, None]
        columns = (self._corner - right[:, None])[:, None, :]
        return self._brightness[self._which, rows, columns].flatten(1)


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


@lru_cache(maxsize=32)
def _bicubic(old: int, new: int) -> Tensor:
    """`[new, old]` weights of Keys' cubic (a = -1/2), half-pixel centres, widened to shrink."""
    scale = old / new
    centre = (torch.arange(new, dtype=torch.float64)[:, None] + 0.5) * scale
    place = torch.arange(old, dtype=torch.float64) + 0.5
    far = (place - centre).abs() / max(scale, 1.0)
    near = (1.5 * far - 2.5) * far * far + 1
    tail = ((2.5 - 0.5 * far) * far - 4) * far + 2
    weights = torch.where(far <= 1, near, torch.where(far < 2, tail, 0.0))
    return whole_weights(weights)
