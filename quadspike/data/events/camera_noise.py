"""What a sensor reports on its own account: background events and hot pixels.

Times are independent of each other (a Poisson process) save that a pixel's dead time holds: of
two noise events too close the later is dropped, and so is one too close to a real event.
"""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor

from quadspike.data.events.camera_pixels import Spikes
from quadspike.randomness import per_sample


def background(
    samples: Tensor,
    seed: int,
    places: Tensor,
    pixels: int,
    *,
    hertz: float,
    on_share: float,
    duration: int,
    name: str,
) -> Spikes:
    """Events at `hertz` of each of the pixels `places`, of the `pixels` that a sensor has."""
    table = _poisson(hertz * len(places) * duration * 1e-6).to(samples.device)
    most = len(table)
    count = torch.searchsorted(table, per_sample(1, samples, seed, 0, f"{name} count").double())
    which, slot = torch.nonzero(torch.arange(most, device=samples.device) < count, as_tuple=True)
    draws = per_sample(3 * most, samples, seed, 0, name).double().view(len(samples), 3, most)
    place, time, side = draws[which, :, slot].unbind(1)
    pixel = places[(place * len(places)).long()]
    on = (side < on_share).to(torch.uint8)
    return Spikes(which * pixels + pixel, (time * duration).long(), on)


def clear_of(noise: Spikes, real: Spikes, dead: int, duration: int) -> Spikes:
    """The noise that keeps the dead time."""
    span = duration + dead + 1
    key, order = torch.sort(noise.pixel * span + noise.t, stable=True)
    spaced = torch.ones_like(key, dtype=torch.bool)
    spaced[1:] = key.diff() >= dead
    # Each real event strikes out the noise less than the dead time away, a run of the keys.
    at = real.pixel * span + real.t
    begin = torch.searchsorted(key, at - dead, right=True)
    end = torch.searchsorted(key, at + dead)
    struck = torch.zeros(len(key) + 1, dtype=torch.int64, device=key.device)
    one = torch.ones((), dtype=torch.int64, device=key.device).expand(len(at))
    struck.scatter_add_(0, begin, one).scatter_add_(0, torch.maximum(begin, end), -one)
    kept = order[spaced & (struck.cumsum(0)[:-1] == 0)]
    return Spikes(noise.pixel[kept], noise.t[kept], noise.p[kept])


@lru_cache(maxsize=32)
def _poisson(mean: float) -> Tensor:
    """The cumulative distribution, up to ten standard deviations above the mean."""
    most = math.ceil(mean + 10 * math.sqrt(mean)) + 10
    if mean == 0:
        return torch.ones(most, dtype=torch.float64)
    k = torch.arange(most, dtype=torch.float64)
    return torch.exp(k * math.log(mean) - mean - torch.lgamma(k + 1)).cumsum(0)
