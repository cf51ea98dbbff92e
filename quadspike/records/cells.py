"""Cells of tables, and tables of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean, stdev

from quadspike.records.runs import RunRecord
from quadspike.written import with_spread


def seeds_of(runs: Sequence[RunRecord]) -> str:
    """How many seeds runs of one setting have, and how many runs if that is not the same."""
    seeds = len({run.recipe.seed for run in runs})
    return str(seeds) if seeds == len(runs) else f"{seeds}, {len(runs)} runs"


def mean_percent(shares: Sequence[float]) -> str:
    """Of accuracies, with the sample standard deviation where there are several."""
    percents = [100 * share for share in shares]
    return with_spread(fmean(percents), stdev(percents) if len(percents) > 1 else None)


def markdown(headings: Sequence[str], align: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table."""
    return "\n".join(f"| {' | '.join(line)} |" for line in (headings, align, *rows))
