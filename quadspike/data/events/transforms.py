"""Augmentation of clips on their device: one draw a clip, all its frames alike.

A clip batch is `[B, T, 2, H, W]`; every transform keeps that layout, but for the last, which
makes what a model takes: float32 `[T, B, 2, H, W]`, time first, in events per pixel.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from quadspike.data.augment.basic import Pipeline, RandomCrop, RandomFlip, pick
from quadspike.data.loader import Draw, Transform
from quadspike.errors import QuadspikeError, check_count, check_name

STYLES = ("paper", "tet", "crop")


def dvs_train(style: str = "paper", *, levels: int) -> Pipeline:
    """A published augmentation of CIFAR10-DVS.

    "paper" flips left and right and turns by up to 10 degrees; "tet" flips and rolls by up to
    5 pixels each way, round the edge; "crop" moves by up to 4 pixels over an edge of zeros,
    then flips. `levels` is what one event is worth in the bytes, the split's `levels`.
    """
    steps: dict[str, tuple[Transform, ...]] = {
        "paper": (RandomFlip(), RandomRotation(10.0)),
        "tet": (RandomFlip(), RandomRoll(5)),
        "crop": (RandomCrop(4), RandomFlip()),
    }
    return Pipeline((*steps[check_name("style", style, STYLES)], TimeFirst(levels)))


def dvs_test(*, levels: int) -> Pipeline:
    """No augmentation: float32 `[T, B, 2, H, W]` in events; `levels` as for `dvs_train`."""
    return Pipeline((TimeFirst(levels),))


@dataclass(frozen=True)
class RandomRotation:
    """Turn by up to `degrees` either way about the centre; bilinear, zeros from outside."""

    degrees: float

    def __post_init__(self) -> None:
        if not 0 < self.degrees <= 180:
            raise QuadspikeError(f"a rotation turns by 0 to 180 degrees, got {self.degrees!r}")

    def __call__(self, x: Tensor, draw: Draw) -> Tensor:
        batch, time, channels, height, width = _clips(x).shape
        angle = (2 * draw.uniform(1, "rotation") - 1) * math.radians(self.degrees)
        cos, sin = angle.cos().view(-1, 1, 1), angle.sin().view(-1, 1, 1)
        # In pixels from the centre, so that a picture that is not square is not sheared.
        down = torch.arange(height, device=x.device).view(1, -1, 1) - (height - 1) / 2
        right = torch.arange(width, device=x.device).view(1, 1, -1) - (width - 1) / 2
        across = (cos * right - sin * down) * (2 / width)
        along = (sin * right + cos * down) * (2 / height)
        grid = torch.stack((across, along), dim=-1)
        planes = x.float().reshape(batch, time * channels, height, width)
        turned = F.grid_sample(
            planes, grid, mode="bilinear", padding_mode="zeros", align_corners=False
        )
        return turned.view(x.shape)


@dataclass(frozen=True)
class RandomRoll:
    """Shift by up to `most` pixels along each axis; what leaves enters on the other side."""

    most: int

    def __post_init__(self) -> None:
        check_count("the most of a roll", self.most)

    def __call__(self, x: Tensor, draw: Draw) -> Tensor:
        height, width = _clips(x).shape[-2:]
        shifts = pick(draw.uniform(2, "roll"), 2 * self.most + 1) - self.most
        rows = (torch.arange(height, device=x.device) - shifts[:, :1]) % height
        columns = (torch.arange(width, device=x.device) - shifts[:, 1:]) % width
        place = (rows[:, :, None] * width + columns[:, None, :]).view(len(x), 1, 1, -1)
        planes = x.flatten(-2)
        return planes.gather(-1, place.expand_as(planes)).view(x.shape)


@dataclass(frozen=True)
class TimeFirst:
    """Bytes `[B, T, C, H, W]` to float32 `[T, B, C, H, W]`, divided by `levels`."""

    levels: int

    def __post_init__(self) -> None:
        check_count("levels", self.levels)

    def __call__(self, x: Tensor, draw: Draw) -> Tensor:
        return _clips(x).transpose(0, 1).contiguous().float() / self.levels


def _clips(x: Tensor) -> Tensor:
    if x.ndim != 5:
        raise QuadspikeError(f"clips must be [B, T, C, H, W], got {list(x.shape)}")
    return x
