"""From records to the lines of a figure: learning curves, or accuracy against a field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Literal

from quadspike.errors import QuadspikeError, check_name
from quadspike.records.groups import by_setting, differing, label, place, rank, setting, value
from quadspike.records.runs import RunRecord
from quadspike.records.words import heading, shown

Points = list[tuple[float, float]]


@dataclass(frozen=True)
class Series:
    """One line: a setting's runs, each with its points."""

    label: str
    runs: list[Points]

    def at(self) -> dict[float, list[float]]:
        """What the runs have at each place.

        >>> Series("two seeds", [[(1, 60), (2, 80)], [(1, 70), (2, 82)]]).at()
        {1: [60, 70], 2: [80, 82]}
        """
        found: dict[float, list[float]] = {}
        for x, y in sorted(point for run in self.runs for point in run):
            found.setdefault(x, []).append(y)
        return found

    def mean(self) -> Points:
        """The line through the means."""
        return [(x, fmean(values)) for x, values in self.at().items()]


@dataclass(frozen=True)
class Plot:
    """All lines, what the axes are, and where values lie that have a name."""

    x: str
    y: str
    series: list[Series]
    along: Literal["epochs", "numbers", "names"]
    """What the x axis is; on one of names, places are ordinals."""
    names: dict[str, float] = field(default_factory=dict)
    joined: bool = True
    """Whether a line goes through the points of a series."""


def curves(records: Sequence[RunRecord]) -> Plot:
    """Accuracy by epochs, a line for each setting."""
    judge, said = judged_by(records)
    fields = differing(records)
    series = [
        Series(label(runs[0], fields), _at_the_same([curve(run, judge) for run in runs]))
        for runs in by_setting(records)
    ]
    return Plot("epoch", said, series, "epochs")


def _at_the_same(runs: list[Points]) -> list[Points]:
    """Only the epochs at which all runs were evaluated: a mean of others is of other seeds.

    >>> _at_the_same([[(1, 10), (2, 50), (4, 70)], [(1, 30), (4, 90)]])
    [[(1, 10), (4, 70)], [(1, 30), (4, 90)]]
    """
    common = set.intersection(*({x for x, _ in run} for run in runs))
    return [[(x, y) for x, y in run if x in common] for run in runs]


def against(records: Sequence[RunRecord], x: str) -> Plot:
    """Accuracy after the last epoch by a field, a line for each combination of the others.

    Names take a place among numbers where the neuron can tell it, as it can for windows; if one
    cannot, all values stand in a row.
    """
    check_name("field", x, {field for record in records for field in setting(record)})
    fields = differing(records)
    if x not in fields:
        others = f"they differ in: {', '.join(fields)}" if fields else "they differ in no field"
        raise QuadspikeError(f"these runs do not differ in {x!r}; {others}")
    fields.remove(x)
    judge, said = judged_by(records)
    places = [place(record, x) for record in records]
    row = list(dict.fromkeys(text for *_, text in sorted(rank(record, x) for record in records)))
    found: dict[str, list[Points]] = {}
    for record in (run for runs in by_setting(records) for run in runs):
        at = place(record, x)
        if at is None or None in places:
            at = row.index(shown(x, value(record, x)))
        found.setdefault(label(record, fields), []).append([(at, curve(record, judge)[-1][1])])
    series = [Series(called, runs) for called, runs in found.items()]
    if None in places:
        names = {text: float(at) for at, text in enumerate(row)}
        return Plot(heading(x), said, series, "names", names)
    said_x = "centre of the window" if x == "window" else heading(x)
    return Plot(said_x, said, series, "numbers", _names(records, x))


def judged_by(records: Sequence[RunRecord]) -> tuple[str, str]:
    """Whose accuracy is drawn, and how the axis calls it: one that all of the runs have."""
    if all(record.recipe.validation for record in records):
        return "validation_accuracy", "accuracy on held-out images, %"
    return "test_accuracy", "test accuracy, %"


def curve(record: RunRecord, judge: str) -> Points:
    """Accuracy in percent after every epoch that has one."""
    return [(line["epoch"], 100 * line[judge]) for line in record.metrics if judge in line]


def _names(records: Sequence[RunRecord], x: str) -> dict[str, float]:
    """Where each value lies that is no number; with the neuron, where that decides it."""
    found: dict[str, dict[float, str]] = {}
    for record in records:
        had, at = value(record, x), place(record, x)
        if at is not None and (had is None or isinstance(had, str)):
            neuron = shown("neuron", record.recipe.neuron)
            found.setdefault(shown(x, had), {}).setdefault(at, neuron)
    return {
        text if len(places) == 1 else f"{text}, {neuron}": at
        for text, places in found.items()
        for at, neuron in places.items()
    }
