"""The pixels of an event camera: each compares log brightness with what it last reported.

A pixel's reference level moves by its threshold as often as the log brightness has moved away
by one, up for ON and down for OFF; each such crossing is an event, at the time at which a
straight line between the two levels seen crosses. Within the dead time after an event the
pixel reports nothing, though its reference still moves.

Log brightness and thresholds are whole multiples of 2^-20 and times are microseconds, so the
arithmetic is exact: no event hangs on rounding.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

LOG_STEPS = 2**20
"""Steps of log brightness to one natural unit."""


class Spikes(NamedTuple):
    """Events in no order: which pixel (of all recordings), microseconds, polarity."""

    pixel: Tensor
    t: Tensor
    p: Tensor


class Pixels:
    """Recordings side by side, `[B, pixels]`, from the level seen first.

    `on` and `off` are thresholds `[pixels]`, `dead` is in microseconds.
    """

    def __init__(self, level: Tensor, on: Tensor, off: Tensor, dead: int) -> None:
        self._level = level
        self._reference = level.clone()
        # The last event of each pixel; long enough ago at the start.
        self._last = torch.full(level.shape, -dead, dtype=torch.int64, device=level.device)
        self._on, self._off, self._dead = on, off, dead

    def see(self, level: Tensor, start: int, length: int) -> Spikes:
        """The events while log brightness goes straight to `level` `[B, pixels]`."""
        before, self._level = self._level, level
        gap = level - self._reference
        threshold = torch.where(gap > 0, self._on, self._off)
        moved = torch.div(gap, threshold, rounding_mode="trunc") * threshold
        old = self._reference
        self._reference = old + moved
        # Few pixels cross in a step: what follows is done for those alone, in 64 bits.
        pixel = torch.nonzero(moved.view(-1)).view(-1)
        theta, gone = (x.view(-1)[pixel].long() for x in (threshold.expand_as(gap), moved))
        from_level, to_level = before.view(-1)[pixel].long(), level.view(-1)[pixel].long()
        sign = gone.sign()
        way = (to_level - from_level).abs()
        ahead = (old.view(-1)[pixel] - from_level) * sign
        crossings = gone.abs() // theta
        return self._report(pixel, sign, theta, way, ahead, crossings, start, length)

    def _report(
        self,
        pixel: Tensor,
        sign: Tensor,
        theta: Tensor,
        way: Tensor,
        ahead: Tensor,
        crossings: Tensor,
        start: int,
        length: int,
    ) -> Spikes:
        """Those crossings that the dead time lets through.

        Crossing j = 1, 2, ... is at `start + (ahead + j theta) length / way`. The first one
        reported is the first not before the pixel wakes; after it every `stride`-th.
        """
        last = self._last.view(-1)
        wakes = last[pixel] + self._dead - start
        first = _ceil(wakes * way - ahead * length, theta * length).clamp(min=1)
        stride = _ceil(self._dead * way, theta * length).clamp(min=1)
        count = ((crossings - first).div(stride, rounding_mode="floor") + 1).clamp(min=0)
        final = first + (count - 1) * stride
        final_t = start + (ahead + final * theta) * length // way
        last[pixel] = torch.where(count > 0, final_t, last[pixel])
        total = int(count.sum())
        source = torch.repeat_interleave(count, output_size=total)
        run = torch.arange(total, device=count.device) - (count.cumsum(0) - count)[source]
        j = first[source] + run * stride[source]
        t = start + (ahead[source] + j * theta[source]) * length // way[source]
        return Spikes(pixel[source], t, (sign[source] > 0).to(torch.uint8))


def _ceil(a: Tensor, b: Tensor) -> Tensor:
    return -((-a) // b)
