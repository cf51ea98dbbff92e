"""Simulated recordings beside real ones, in a table."""

from __future__ import annotations

import math
import statistics as numbers
from collections.abc import Callable, Sequence

from rich.table import Table

from quadspike.data.events.form import Events
from quadspike.data.events.statistics import Statistics, statistics

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
        cells = [numbers.fmean(values), numbers.pstdev(values)]
        cells += [value(found) for found in single]
        table.add_row(row, *(format(cell, form) for cell in cells))
    return table
