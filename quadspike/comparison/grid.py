"""A comparison as text: headings, cells and the notes they refer to."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from quadspike.analysis.energy.report import FLAGS
from quadspike.comparison.rows import Comparison, Row
from quadspike.methods import DATASETS
from quadspike.training.record import made_on
from quadspike.written import NOTHING, counted, energy_unit, significant, with_spread


@dataclass
class Notes:
    """Remarks, each with a letter; the same remark has one."""

    texts: list[str] = field(default_factory=list)

    def mark(self, text: str, *remarks: str) -> str:
        """`text` with the letters of its remarks."""
        for remark in remarks:
            if remark not in self.texts:
                self.texts.append(remark)
        letters = [letter(self.texts.index(remark)) for remark in remarks]
        return f"{text} ({', '.join(letters)})" if letters else text


@dataclass(frozen=True)
class Grid:
    """Headings, a row of cells a method, notes by letter, and what concerns all of it."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[tuple[str, str], ...]
    remarks: tuple[str, ...]


def marks_of(cell: str) -> list[str]:
    """The letters that `Notes.mark` put behind a cell.

    >>> marks_of("1.05 (a, ab)"), marks_of("96.44 (CIFAR-10, T = 2)"), marks_of("QIF")
    (['a', 'ab'], [], [])
    """
    found = re.search(r" \(([a-z]+(?:, [a-z]+)*)\)$", cell)
    return found[1].split(", ") if found else []


def letter(index: int) -> str:
    """a, b, ..., z, aa, ab, ...

    >>> letter(0), letter(25), letter(26)
    ('a', 'z', 'aa')
    """
    before, last = divmod(index, 26)
    return (letter(before - 1) if before else "") + chr(ord("a") + last)


def common_unit(comparison: Comparison) -> tuple[str, float]:
    """The unit of the largest energy, and how many make a millijoule."""
    return energy_unit(max((row.energy_mj or 0.0 for row in comparison.rows), default=0.0))


def grid(comparison: Comparison) -> Grid:
    """Everything a table shows, whatever it is written in."""
    notes = Notes()
    unit, many = common_unit(comparison)
    billed = [row.energy_flags for row in comparison.rows if row.energy_mj is not None]
    common = frozenset.intersection(*billed) if billed else frozenset()
    with_memory = any(row.memory_gib is not None for row in comparison.rows)
    headings = [
        "method",
        "accuracy, %",
        "ms a step",
        *["GiB"] * with_memory,
        "firing rate",
        f"energy, {unit}",
        "parameters",
        "spikes",
        "the paper, %",
        "like for like",
    ]
    rows = []
    for row in comparison.rows:
        flags = [FLAGS[flag] for flag in sorted(row.energy_flags - common)]
        own = [row.method.energy_note] if row.method.energy_note else []
        energy = NOTHING if row.energy_mj is None else significant(many * row.energy_mj, 4)
        rows.append(
            (
                row.method.name,
                _accuracy(row, comparison, notes),
                _number(row.step_ms, ".1f"),
                *[_number(row.memory_gib, ".2f")] * with_memory,
                _number(row.firing_rate, ".3f"),
                _marked(energy, [*own, *flags], notes),
                _number(row.parameters, ",.0f"),
                row.method.spikes,
                *_paper(row, notes),
            )
        )
    lettered = tuple((letter(i), text) for i, text in enumerate(notes.texts))
    return Grid(
        _title(comparison), tuple(headings), tuple(rows), lettered, _remarks(comparison, common)
    )


def _accuracy(row: Row, comparison: Comparison, notes: Notes) -> str:
    if row.accuracy is None:
        return notes.mark("failed", *row.failures) if row.failures else NOTHING
    text = with_spread(row.accuracy, row.spread)
    if row.runs < comparison.seeds:
        text = f"{text}, {row.runs} of {comparison.seeds} seeds"
    return notes.mark(text, *row.failures)


def _paper(row: Row, notes: Notes) -> tuple[str, str]:
    if row.cell is None:
        return NOTHING, NOTHING
    figure = row.cell.figure
    printed = with_spread(figure.accuracy, figure.spread)
    return (
        f"{printed} ({DATASETS[figure.dataset]}, T = {figure.timesteps})",
        notes.mark(row.cell.verdict, *row.cell.reasons),
    )


def _marked(text: str, remarks: list[str], notes: Notes) -> str:
    return text if text == NOTHING else notes.mark(text, *remarks)


def _number(value: float | None, spec: str) -> str:
    return NOTHING if value is None else f"{value:{spec}}"


def _title(comparison: Comparison) -> str:
    recipe, seeds = comparison.recipe, comparison.seeds
    return (
        f"{recipe.name}: {recipe.model} on {recipe.dataset}, T = {recipe.timesteps}, "
        f"{counted(recipe.epochs, 'epoch')} and {counted(seeds, 'seed')} a method"
    )


def _remarks(comparison: Comparison, common: frozenset[str]) -> tuple[str, ...]:
    """What to know before reading a single cell."""
    spread = (
        "One seed a method: nothing here says how much of a difference is chance."
        if comparison.seeds == 1
        else "± is the sample standard deviation over seeds."
    )
    parts = dict.fromkeys(part for o in comparison.outcomes for part in o.made_on)
    made = "; and on ".join(parts or [made_on(comparison.environment)])
    if len({o.device for o in comparison.outcomes if o.device}) > 1:
        made += "; times and memory are of one device each"
    flags = [f"At least one layer of every network: {FLAGS[flag]}." for flag in sorted(common)]
    return (
        "Accuracy on the test set after the last epoch. " + spread,
        "ms a step: the median while training, batch and augmentation included. Parameters: those "
        "left at inference. Firing rate and energy: of one inference at 45 nm, measured on 128 "
        "test samples; spikes of both signs count.",
        *flags,
        f"Made on {made}.",
    )
