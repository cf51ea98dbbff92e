"""What a recording is like, in a few numbers."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from quadspike.data.events.form import Events
from quadspike.errors import QuadspikeError


@dataclass(frozen=True)
class Statistics:
    """Numbers to hold a recording, or a simulated one, against another.

    Intervals are between an event and the next, of whatever pixel; `active` is the share of
    pixels with any event, `busiest` the most events of one pixel.
    """

    events: int
    on: int
    seconds: float
    interval_mean_us: float
    interval_sd_us: float
    events_per_pixel: float
    busiest: int
    active: float

    @property
    def rate(self) -> float:
        """Events a second."""
        return self.events / self.seconds if self.seconds else float("inf")

    @property
    def on_off_ratio(self) -> float:
        """ON events for each OFF event."""
        return self.on / (self.events - self.on) if self.on < self.events else float("inf")


def statistics(events: Events) -> Statistics:
    """The statistics of one recording.

    >>> events = Events.of([0, 10, 40], [0, 1, 1], [0, 0, 0], [1, 0, 0], width=4, height=1)
    >>> found = statistics(events)
    >>> found.interval_mean_us, found.on_off_ratio, found.active
    (20.0, 0.5, 0.5)
    """
    if not len(events):
        raise QuadspikeError("a recording without events has no statistics")
    pixels = events.width * events.height
    per_pixel = torch.bincount(events.y.long() * events.width + events.x, minlength=pixels)
    intervals = events.t.diff().double()
    several = len(intervals) > 0
    return Statistics(
        events=len(events),
        on=int(events.p.sum()),
        seconds=events.duration * 1e-6,
        interval_mean_us=float(intervals.mean()) if several else 0.0,
        interval_sd_us=float(intervals.std(correction=0)) if several else 0.0,
        events_per_pixel=len(events) / pixels,
        busiest=int(per_pixel.max()),
        active=float((per_pixel > 0).double().mean()),
    )
