"""What belongs to one sensor, whatever it records: its thresholds and its hot pixels.

Made on the CPU and kept: logarithms and quantiles may differ in the last bit between devices.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from quadspike.data.events.camera_pixels import LOG_STEPS
from quadspike.data.events.camera_screen import BRIGHTEST, GREY_STEPS
from quadspike.randomness import per_sample

_SENSOR = torch.zeros(1, dtype=torch.int64)


class Sensor(NamedTuple):
    """ON and OFF thresholds `[pixels]` in steps of log brightness, and which pixels are hot."""

    on: Tensor
    off: Tensor
    hot: Tensor


@lru_cache(maxsize=8)
def make_sensor(pixels: int, threshold: float, spread: float, hot: int, seed: int) -> Sensor:
    """Normal thresholds, none below a tenth of the mean; hot pixels anywhere.

    >>> make_sensor(4, 0.5, 0.0, 1, seed=0).on.tolist() == [LOG_STEPS // 2] * 4
    True
    """
    draws = per_sample(2 * pixels, _SENSOR, seed, 0, "camera thresholds")[0].double()
    # Half a step off the grid of draws: the quantile of 0 is infinite.
    normal = math.sqrt(2) * torch.erfinv(2 * (draws + 2.0**-25) - 1)
    drawn = (threshold + spread * normal).clamp(min=threshold / 10)
    on, off = torch.round(drawn * LOG_STEPS).clamp(min=1).to(torch.int32).view(2, pixels)
    order = per_sample(pixels, _SENSOR, seed, 0, "camera hot pixels")[0].argsort(stable=True)
    return Sensor(on, off, order[:hot])


@lru_cache(maxsize=8)
def log_table(black: float) -> Tensor:
    """log(grey + black) of every brightness, in steps of log brightness."""
    grey = torch.arange(BRIGHTEST + 1, dtype=torch.float64) / GREY_STEPS
    return torch.round(torch.log(grey + black) * LOG_STEPS).to(torch.int32)
