"""Cells of tables."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev

from quadspike.records.runs import RunRecord
from quadspike.written import NOTHING, counted, millijoule, with_spread


def seeds_of(runs: Sequence[RunRecord], what: str = "") -> str:
    """How many seeds runs of one setting have, and how many runs if that is not the same.

    `what` calls them so; without it a heading does.
    """
    seeds = len({run.recipe.seed for run in runs})
    said = counted(seeds, what) if what else str(seeds)
    return said if seeds == len(runs) else f"{len(runs)} runs of {said}"


def mean_energy(runs: Sequence[RunRecord]) -> str:
    """Of an inference of those runs that could be billed."""
    known = [run.summary["energy_mj"] for run in runs if run.summary.get("energy_mj") is not None]
    return millijoule(fmean(known)) if known else NOTHING


def mean_percent(shares: Sequence[float]) -> str:
    """Of accuracies, with the sample standard deviation where there are several."""
    percents = [100 * share for share in shares]
    return with_spread(fmean(percents), stdev(percents) if len(percents) > 1 else None)
