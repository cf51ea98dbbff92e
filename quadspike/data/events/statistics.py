"""What a recording is like, in a few numbers, and simulated ones beside real ones in a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev

import torch
from rich.table import Table

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


_ROWS: dict[str, tuple[Callable[[Statistics], float], str]] = {
    "events": (lambda s: s.events, ",.0f"),
    "seconds": (lambda s: s.seconds, ".3f"),
    "events a second": (lambda s: s.rate, ",.0f"),
    "ON for each OFF": (lambda s: s.on_off_ratio, ".3f"),
    "interval, mean (us)": (lambda s: s.interval_mean_us, ".2f"),
    "interval, sd (us)": (lambda s: s.interval_sd_us, ".2f"),
    "interval, sd / mean": (lambda s: s.interval_sd_us / (s.interval_mean_us or math.nan), ".2f"),
    "events a pixel": (lambda s: s.events_per_pixel, ".2f"),
    "busiest pixel": (lambda s: s.busiest, ",.0f"),
    "pixels with events": (lambda s: s.active, ".1%"),
}


def recordings_table(simulated: Sequence[Events], real: Sequence[tuple[str, Events]]) -> Table:
    """Mean and standard deviation of simulated recordings, and each real one under its name."""
    several = [statistics(events) for events in simulated]
    single = [statistics(events) for _, events in real]
    table = Table(title=f"{len(several)} simulated recordings{', and real ones' * bool(real)}")
    table.add_column("")
    for heading in ("simulated, mean", "sd", *(name for name, _ in real)):
        table.add_column(heading, justify="right", overflow="fold")
    for row, (value, form) in _ROWS.items():
        values = [value(found) for found in several]
        cells = [fmean(values), pstdev(values)]
        cells += [value(found) for found in single]
        table.add_row(row, *(format(cell, form) for cell in cells))
    return table
