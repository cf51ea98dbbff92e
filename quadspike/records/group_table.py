"""The table of a group: what its runs share in a sentence, what they differ in by columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

from quadspike.markdown import markdown_table
from quadspike.records.cells import mean_energy, mean_percent, seeds_of
from quadspike.records.command import changes, packaged
from quadspike.records.groups import by_setting, differing, setting, value
from quadspike.records.runs import RunRecord
from quadspike.records.words import heading, phrase, shown
from quadspike.written import NOTHING, counted, significant

_SAID = ("validation", "epochs", "timesteps", "device")
"""What all runs share and the sentence says in words of its own."""


def group_table(records: Sequence[RunRecord]) -> str:
    """Markdown: a sentence, a row for the seeds of a setting together, a remark."""
    fields, rows = differing(records), by_setting(records)
    held = any(record.recipe.validation for record in records)
    outcomes = ["held-out, %"] * held + [
        "test, %",
        "training loss",
        "firing rate, %",
        "energy an image",
        "seeds",
    ]
    best = max(map(_held_out, rows)) if len(rows) > 1 else math.inf
    table = markdown_table(
        [*map(heading, fields), *outcomes],
        "l" * len(fields) + "r" * len(outcomes),
        ([*_fields(runs[0], fields), *_outcomes(runs, held, best)] for runs in rows),
    )
    return "\n\n".join([_shared(records, fields), table, _remark(held)]) + "\n"


def _shared(records: Sequence[RunRecord], fields: Sequence[str]) -> str:
    """What all the runs have in common: a packaged recipe, and what is not as in that."""
    first = records[0]
    base, values = packaged(first.recipe), setting(first)
    common = {field: value for field, value in values.items() if field not in fields}
    unlike = changes(base, first.recipe)
    others = [
        f"{heading(field)} {shown(field, value)}"
        for field, value in common.items()
        if field in unlike and field not in _SAID
    ]
    if common.get("init_from"):
        others.append(phrase("init_from", common["init_from"]))
    if common.get("validation"):
        others.append(f"{common['validation']:,} training images held out")
    words = f"`{base}`" + (f" with {', '.join(others)}" if others else "")
    rest: dict[str, Callable[[Any], str]] = {
        "epochs": lambda count: counted(count, "epoch"),
        "timesteps": lambda steps: f"T = {steps}",
        "device": lambda device: f"on {device}",
    }
    facts = ", ".join(say(common[field]) for field, say in rest.items() if field in common)
    but = ", but for what its row says" if fields else ""
    return f"Every run is {words}{but}{'; ' * bool(facts)}{facts}."


def _fields(record: RunRecord, fields: Sequence[str]) -> list[str]:
    return [shown(field, value(record, field)) for field in fields]


def _outcomes(runs: Sequence[RunRecord], held: bool, best: float) -> list[str]:
    first = _accuracy(runs, "validation_accuracy")
    chosen = f"**{first}**" if _held_out(runs) == best else first
    rates = [run.summary["firing_rate"] for run in runs if "firing_rate" in run.summary]
    return [
        *[chosen] * held,
        _accuracy(runs, "test_accuracy"),
        significant(fmean(run.metrics[-1]["train_loss"] for run in runs)),
        f"{100 * fmean(rates):.1f}" if rates else NOTHING,
        mean_energy(runs),
        seeds_of(runs),
    ]


def _held_out(runs: Sequence[RunRecord]) -> float:
    known = runs[0].recipe.validation > 0
    return fmean(run.summary["validation_accuracy"] for run in runs) if known else -math.inf


def _accuracy(runs: Sequence[RunRecord], key: str) -> str:
    found = [run.summary.get(key) for run in runs]
    shares = [share for share in found if share is not None]
    return mean_percent(shares) if shares else NOTHING


def _remark(held: bool) -> str:
    chosen = "Choices are made on the held-out images, the best in bold. " * held
    return (
        "After the last epoch; means over the seeds, of accuracies with the sample standard "
        f"deviation. {chosen}Firing rate and energy of one inference at 45 nm: of up to 128 test "
        "images."
    )
