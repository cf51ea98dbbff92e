"""Crops, flips, holes and normalisation of a batch, each sample by its own draw."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

from quadspike.data.loader import Draw, Transform
from quadspike.errors import QuadspikeError, check_count


@dataclass(frozen=True)
class Pipeline:
    """Transforms one after the other, all fed by the same draw."""

    steps: tuple[Transform, ...]

    def __call__(self, x: Tensor, draw: Draw) -> Tensor:
        for step in self.steps:
            x = step(x, draw)
        return x


@dataclass(frozen=True)
class RandomCrop:
    """Pad with zeros, then cut the original size out at one of (2 padding + 1)^2 places.

    All frames of a clip `[B, T, C, H, W]` are cut alike.
    """

    padding: int = 4

    def __post_init__(self) -> None:
        check_count("the padding of a crop", self.padding)

    def __call__(self, x: Tensor, draw: Draw) -> Tensor:
        top, left = pick(draw.uniform(2, "crop"), 2 * self.padding + 1).unbind(1)
        return crop(F.pad(x, (self.padding,) * 4), top, left, x.shape[-2], x.shape[-1])


@dataclass(frozen=True)
class RandomFlip:
    """Mirror left and right with probability one half; a clip as a whole."""

    def __call__(self, x: Tensor, draw: Draw) -> Tensor:
        flipped = draw.uniform(1, "flip") < 0.5
        return torch.where(flipped.view(-1, *[1] * (x.ndim - 1)), x.flip(-1), x)


@dataclass(frozen=True)
class Cutout:
    """A black square hole, its centre uniform over all pixels, clipped at the borders.

    It belongs before the normalisation, where black is 0. The hole begins `length // 2`
    pixels above and left of the centre, so its area can be as small as a quarter.
    """

    length: int = 16

    def __post_init__(self) -> None:
        check_count("the length of a cutout", self.length)

    def __call__(self, x: Tensor, draw: Draw) -> Tensor:
        draws = draw.uniform(2, "cutout")
        rows = self._within(pick(draws[:, 0], x.shape[-2]), x.shape[-2])
        columns = self._within(pick(draws[:, 1], x.shape[-1]), x.shape[-1])
        hole = rows[:, :, None] & columns[:, None, :]
        return x.masked_fill(hole.view(len(x), *[1] * (x.ndim - 3), *x.shape[-2:]), 0)

    def _within(self, centre: Tensor, size: int) -> Tensor:
        first = (centre - self.length // 2)[:, None]
        place = torch.arange(size, device=centre.device)
        return (place >= first) & (place < first + self.length)


@dataclass(frozen=True)
class Normalize:
    """Bytes to float32: (x / 255 - mean) / std per channel, channels-last in memory."""

    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.mean) != len(self.std) or not all(value > 0 for value in self.std):
            raise QuadspikeError(
                "Normalize needs a mean and a std > 0 for every channel, "
                f"got {self.mean} and {self.std}"
            )

    def __call__(self, x: Tensor, draw: Draw) -> Tensor:
        if x.dtype != torch.uint8 or x.ndim != 4 or x.shape[1] != len(self.mean):
            raise QuadspikeError(
                f"Normalize takes uint8 images [B, {len(self.mean)}, H, W], "
                f"got {x.dtype} {tuple(x.shape)}; it comes once, last"
            )
        scale, shift = _scale_and_shift(self.mean, self.std, x.device)
        floats = x.to(torch.float32, memory_format=torch.channels_last)
        return floats.mul_(scale).add_(shift)


def pick(draws: Tensor, count: int) -> Tensor:
    """One of 0 ... count - 1, uniformly, from draws in [0, 1).

    >>> pick(torch.tensor([0.0, 0.5, 0.99]), 3).tolist()
    [0, 1, 2]
    """
    return (draws * count).long()


def crop(x: Tensor, top: Tensor, left: Tensor, height: int, width: int) -> Tensor:
    """Cut `height` x `width` out of every sample of `[B, ..., H, W]` at its own place.

    >>> x = torch.arange(9).view(1, 1, 3, 3)
    >>> crop(x, torch.tensor([1]), torch.tensor([0]), 2, 2).flatten().tolist()
    [3, 4, 6, 7]
    """
    rows = top[:, None] + torch.arange(height, device=x.device)
    columns = left[:, None] + torch.arange(width, device=x.device)
    place = (rows[:, :, None] * x.shape[-1] + columns[:, None, :]).flatten(1)
    planes = x.flatten(-2).flatten(1, -2)
    cut = planes.gather(2, place[:, None].expand(-1, planes.shape[1], -1))
    return cut.view(*x.shape[:-2], height, width)


# Kept per device: a copy from the host could not be captured in a CUDA graph.
@cache
def _scale_and_shift(
    mean: tuple[float, ...], std: tuple[float, ...], device: torch.device
) -> tuple[Tensor, Tensor]:
    scale = [1 / (255 * s) for s in std]
    shift = [-m / s for m, s in zip(mean, std, strict=True)]
    as_channels = torch.tensor([scale, shift], device=device).view(2, -1, 1, 1)
    return as_channels[0], as_channels[1]
