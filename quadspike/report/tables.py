"""What the page says in numbers: the head, the comparison, recipes, layers, environments."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from quadspike.report.labels import Shown, scrolling
from quadspike.report.looks import colour
from quadspike.report.markup import Html, tag
from quadspike.report.runs import Run, Summary
from quadspike.training.constants import one_by_one
from quadspike.training.fields import field_order
from quadspike.training.recipe import Recipe
from quadspike.written import (
    NOTHING,
    capitals,
    duration,
    millijoule,
    percent,
    plain,
    significant,
    spending,
)


def summary_of(run: Run) -> Summary | None:
    """The record's summary; of a run without one, what its epochs tell; None before the first."""
    if run.record is not None:
        return run.record.summary
    if run.judged is None:
        return None
    last = run.epochs[-1]
    held_out = any(math.isfinite(epoch.validation_accuracy) for epoch in run.epochs)
    chosen_on = "validation" if held_out else "test"
    best = max(
        run.epochs,
        key=lambda e: _at_least(e.validation_accuracy if held_out else e.test_accuracy),
    )
    return Summary(
        status="unfinished",
        epochs=len(run.epochs),
        seconds=last.seconds,
        test_accuracy=run.judged.test_accuracy,
        best_test_accuracy=best.test_accuracy,
        best_epoch=best.epoch,
        best_chosen_on=chosen_on,
        validation_accuracy=run.judged.validation_accuracy if held_out else None,
        images_per_second=last.images_per_second,
        peak_memory_gib=None,
        evaluated_epoch=run.judged.epoch,
    )


def _at_least(value: float) -> float:
    return value if math.isfinite(value) else -math.inf


def head_card(shown: Shown) -> Html:
    """The run in one line: last accuracy first, best beside it."""
    recipe, summary = shown.run.recipe, summary_of(shown.run)
    neuron, loss = recipe.neuron_words(), capitals(recipe.loss)
    network = f"{recipe.model} on {recipe.dataset}"
    what = f"{shown.run.name}: {network}, {neuron}, {loss}, T = {recipe.timesteps}"
    who = tag("div", tag("strong", shown.named), tag("p", what, class_="soft"), class_="who")
    if summary is None:
        stats = tag("p", "No epoch has finished yet.", class_="soft")
    else:
        best = f"epoch {summary.best_epoch}, chosen on {summary.best_chosen_on}"
        if recipe.evaluate_every > 1:
            best += f" every {recipe.evaluate_every} epochs"
        whole = summary.evaluated_epoch in (None, summary.epochs)
        when = "last epoch" if whole else f"epoch {summary.evaluated_epoch}"
        length = f"{summary.epochs} of {recipe.epochs} epochs"
        stats = tag(
            "dl",
            _stat("Test accuracy", percent(summary.test_accuracy), when, "first"),
            _stat("Best epoch", percent(summary.best_test_accuracy), best),
            _stat("Time", duration(summary.seconds), length),
            _stat("Energy", millijoule(summary.energy_mj), "an inference"),
            _stat("Firing rate", percent(summary.firing_rate), "a neuron and step"),
            class_="stat",
        )
    return tag("div", who, stats, class_="card", style=f"--run:{colour(shown.index)}")


def _stat(name: str, value: str, note: str, kind: str | None = None) -> Html:
    return tag("div", tag("dt", name), tag("dd", value, tag("small", note)), class_=kind)


class _Column(NamedTuple):
    title: str
    value: Callable[[Summary], float]
    show: Callable[[float], str]
    best: Callable[[Sequence[float]], float] | None = None


_COLUMNS = (
    _Column("test accuracy, last", lambda s: s.test_accuracy, lambda v: percent(v, 2), max),
    _Column(
        "test accuracy, best epoch", lambda s: s.best_test_accuracy, lambda v: percent(v, 2), max
    ),
    _Column("time", lambda s: s.seconds, duration, min),
    _Column("images a second", lambda s: s.images_per_second, lambda v: f"{v:,.0f}", max),
    _Column("firing rate", lambda s: s.firing_rate, lambda v: percent(v, 2)),
    _Column("energy", lambda s: s.energy_mj, millijoule, min),
)


def comparison(runs: Sequence[Shown]) -> Html:
    """A run a row; the best of a column has a star."""
    summaries = [summary_of(shown.run) for shown in runs]
    # A run that did not end is not the fastest.
    known = [s for s in summaries if s is not None and s.status == "finished"]
    best = {
        column.title: column.best(values)
        for column in _COLUMNS
        if column.best
        and len(values := [v for v in map(column.value, known) if math.isfinite(v)]) > 1
        and min(values) < max(values)
    }
    rows = []
    for shown, summary in zip(runs, summaries, strict=True):
        cells = [tag("th", shown.named, scope="row")]
        for column in _COLUMNS:
            value = column.value(summary) if summary else math.nan
            kind = "number best" if value == best.get(column.title) else "number"
            text = column.show(value) if math.isfinite(value) else NOTHING
            cells.append(tag("td", text, class_=kind))
        record = shown.run.record
        cells.append(tag("td", f"{record.parameters:,}" if record else NOTHING, class_="number"))
        rows.append(cells)
    titles = ["run", *(column.title for column in _COLUMNS), "parameters"]
    return table(
        "The runs side by side; ★ marks the best of the finished ones.", titles, rows, first=1
    )


def differences(runs: Sequence[Shown]) -> Html:
    """The fields of the recipes that are not the same in all runs."""
    plans = [one_by_one(shown.run.recipe.as_dict()) for shown in runs]
    names = sorted({name for plan in plans for name in plan} - {"name"}, key=field_order)
    rows = [
        [tag("th", tag("code", name), scope="row"), *(tag("td", plain(p.get(name))) for p in plans)]
        for name in names
        if any(plan.get(name) != plans[0].get(name) for plan in plans)
    ]
    if not rows:
        return tag("p", "The recipes do not differ.")
    titles = ["field", *(shown.named for shown in runs)]
    return table("What differs between the recipes.", titles, rows)


def recipes(runs: Sequence[Shown]) -> Html:
    """Every field of every recipe; what is not the default is marked."""
    rows = []
    for field in dataclasses.fields(Recipe):
        values = [getattr(shown.run.recipe, field.name) for shown in runs]
        cells = [
            tag("td", tag("mark", plain(value)) if _changed(field, value) else plain(value))
            for value in values
        ]
        rows.append([tag("th", tag("code", field.name), scope="row"), *cells])
    titles = ["field", *(shown.named for shown in runs)]
    return table("Values other than the defaults are marked.", titles, rows)


def _changed(field: dataclasses.Field[object], value: object) -> bool:
    return field.default is not dataclasses.MISSING and value != field.default


def environments(runs: Sequence[Shown]) -> Html:
    """Where and by which code each run was made."""
    facts = [_facts(shown.run) for shown in runs]
    names = list(dict.fromkeys(name for known in facts for name in known))
    rows = [
        [tag("th", name, scope="row"), *(tag("td", known.get(name, NOTHING)) for known in facts)]
        for name in names
    ]
    titles = ["", *(shown.named for shown in runs)]
    return table("The code, the machine and the weights' checksums (SHA-256).", titles, rows)


def _facts(run: Run) -> dict[str, str]:
    if run.record is None:
        return {}
    parts = [*run.record.earlier_environments, run.record.environment]
    facts = {"parts": f"{len(parts)} unlike each other, the last named last"} if parts[1:] else {}
    for name in run.record.environment:
        values = [plain(part.get(name)) for part in parts]
        facts[name] = values[-1] if len(set(values)) == 1 else "; ".join(values)
    memory = run.record.summary.peak_memory_gib
    if memory is not None:
        facts["peak memory"] = f"{significant(memory)}\u00a0GiB"
    if spent := run.record.summary.seconds_spent_on:
        facts["time"] = spending(spent)
    if run.record.notes:
        facts["notes"] = "; ".join(run.record.notes)
    return facts | {name: f"{digest[:16]}…" for name, digest in run.record.weights.items()}


def layers(shown: Shown) -> Html:
    """Every layer of neurons in numbers."""
    rows = []
    for layer in shown.layers:
        by_step = " ".join(f"{100 * rate:.1f}" for rate in layer.rate_by_step)
        numbers = [
            percent(layer.rate, 2),
            by_step,
            percent(layer.inside_window),
            f"{layer.window[0]:.3f}\u00a0…\u00a0{layer.window[1]:.3f}",
            f"{layer.mean:.3f}",
            f"{layer.largest:.2f}",
            f"{layer.threshold:.3g}",
        ]
        cells = [tag("td", value, class_="number") for value in numbers]
        rows.append([tag("th", layer.layer, scope="row"), tag("td", layer.neuron), *cells])
    titles = [
        "layer",
        "neuron",
        "rate",
        "rate by step (%)",
        "inside window",
        "window",
        "mean membrane",
        "largest",
        "threshold",
    ]
    return table(shown.label, titles, rows, first=2)


def table(
    caption: str, titles: Sequence[object], rows: Sequence[Sequence[Html]], first: int | None = None
) -> Html:
    """A table that scrolls in its own box; numbers from column `first` on."""
    heads = [
        tag("th", title, scope="col", class_=None if first is None or i < first else "number")
        for i, title in enumerate(titles)
    ]
    content = tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", *heads)),
        tag("tbody", *(tag("tr", *row) for row in rows)),
    )
    return scrolling(f"Table: {caption}", content)
