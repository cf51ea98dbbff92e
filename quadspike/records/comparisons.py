"""The record of a comparison: its outcomes, and the table that follows from them."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

from quadspike.comparison.jobs import ComparisonFolder
from quadspike.comparison.outcome import FORMAT, Outcome
from quadspike.comparison.rows import Comparison, summarise
from quadspike.errors import QuadspikeError
from quadspike.methods import find_method
from quadspike.records.runs import device, whole
from quadspike.records.source import Repository, find_commit, prove
from quadspike.records.store import Files
from quadspike.training.folder import RunFolder
from quadspike.training.recipe import Recipe
from quadspike.written import with_spread

COMPARISON, TABLE, SHEET = "comparison.json", "table.md", "table.csv"
NUMBERS = {
    "accuracy": "accuracy_percent",
    "spread": "accuracy_spread",
    "step_ms": "step_ms",
    "memory_gib": "memory_gib",
    "firing_rate": "firing_rate",
    "energy_mj": "energy_mj",
    "parameters": "parameters",
    "runs": "runs",
}
"""What a row computes, and its column of the sheet."""


def record_comparison(folder: Path, repository: Repository, note: str = "") -> Files:
    """The files of a record of the comparison in `folder`, checked; no pictures."""

    def make() -> Files:
        place = ComparisonFolder(folder)
        found = json.loads(place.record.read_text(encoding="utf-8"))
        content = {
            "format": found.pop("format"),
            "commit": find_commit(found["environment"], repository),
            **({"note": note} if note else {}),
            **found,
        }
        _check_folders(folder, content)
        return {
            COMPARISON: json.dumps(content, indent=1) + "\n",
            **{name: (folder / name).read_text(encoding="utf-8") for name in (TABLE, SHEET)},
        }

    try:
        files = whole(make)
        check_comparison(files, repository)
    except QuadspikeError as error:
        raise QuadspikeError(f"no record of {folder}: {error}") from None
    return files


def _check_folders(folder: Path, content: dict[str, Any]) -> None:
    """Refuse outcomes that are not those of the runs beside them."""
    asked = content["seeds"] * len(content["rows"])
    if len(content["outcomes"]) != asked:
        raise QuadspikeError(
            f"{len(content['outcomes'])} of its {asked} runs have come to an end; give the same "
            "command again to go on"
        )
    for outcome in content["outcomes"]:
        record = RunFolder(folder / outcome["method"] / f"seed-{outcome['seed']}").record
        if outcome["failure"] or not record.exists():
            continue
        found = json.loads(record.read_text(encoding="utf-8"))
        parts = [*found.get("earlier_environments", ()), found["environment"]]
        if any(part["source"] != content["environment"]["source"] for part in parts):
            raise QuadspikeError(
                f"{outcome['method']} with seed {outcome['seed']} was trained with another source "
                "than the last of its runs; compare anew with one"
            )
        if (trained_on := device(found)) != content["environment"]["device"]:
            raise QuadspikeError(
                f"{outcome['method']} with seed {outcome['seed']} was trained on {trained_on}, the "
                f"last of its runs on {content['environment']['device']}; compare anew on one"
            )
        noted = found["summary"]["test_accuracy"]
        if noted != outcome["accuracy"]:
            raise QuadspikeError(
                f"{outcome['method']} with seed {outcome['seed']} noted the accuracy {noted}, the "
                f"comparison has {outcome['accuracy']}"
            )


def read_comparison(content: dict[str, Any]) -> Comparison:
    """A comparison with its rows computed anew from its outcomes."""
    if content["format"] != FORMAT:
        raise QuadspikeError(f"it has another format than {FORMAT}")
    recipe = Recipe.from_dict(content["recipe"])
    outcomes = tuple(map(Outcome.of, content["outcomes"]))
    rows = tuple(summarise(find_method(row["method"]), outcomes, recipe) for row in content["rows"])
    return Comparison(recipe, content["seeds"], rows, outcomes, content["environment"])


def check_comparison(files: Files, repository: Repository) -> Comparison:
    """The comparison, if its rows and both of its tables follow from its outcomes."""
    if set(files) != {COMPARISON, TABLE, SHEET}:
        raise QuadspikeError(
            f"a record of a comparison has {COMPARISON}, {TABLE}, {SHEET} and no others"
        )

    def check() -> Comparison:
        content = json.loads(files[COMPARISON])
        comparison = read_comparison(content)
        lines = [*csv.DictReader(io.StringIO(files[SHEET]))]
        sheet = {line["method"]: line for line in lines}
        for row, stated in zip(comparison.rows, content["rows"], strict=True):
            key = row.method.key
            for name, column in NUMBERS.items():
                value, cell = getattr(row, name), sheet[key][column]
                _same(key, name, value, stated[name])
                _same(key, f"{column} in {SHEET}", value, float(cell) if cell else None)
            if row.accuracy is not None and not _shown(files[TABLE], row.method.name, row):
                raise QuadspikeError(f"{TABLE} has another accuracy for {key} than its runs")
        _check_methods(comparison, files[TABLE], [line["method"] for line in lines])
        prove(content["environment"], content["commit"], repository)
        return comparison

    return whole(check)


def _check_methods(comparison: Comparison, table: str, sheet: list[str]) -> None:
    """Refuse rows that leave runs out, and tables that leave rows out or have more."""
    first, methods = comparison.recipe.seed, [row.method for row in comparison.rows]
    found = sorted((outcome.method, outcome.seed) for outcome in comparison.outcomes)
    if len(found) != comparison.seeds * len(methods) or found != sorted(
        (method.key, seed) for method in methods for seed in range(first, first + comparison.seeds)
    ):
        raise QuadspikeError("it has not just one outcome of each method and seed of its rows")
    lines = [line for line in table.splitlines() if line.startswith("| ")]
    shown = [line.split(" | ")[0].removeprefix("| ") for line in lines]
    for file, ours, right in (
        (SHEET, sheet, [method.key for method in methods]),
        (TABLE, shown[2:], [method.name for method in methods]),
    ):
        if ours != right:
            raise QuadspikeError(f"{file} has other methods than its rows, or not in their order")


def _same(method: str, what: str, ours: float | None, stated: float | None) -> None:
    if (ours is None) != (stated is None) or not math.isclose(ours or 0.0, stated or 0.0):
        raise QuadspikeError(f"{method} has {what} {stated}, its runs give {ours}")


def _shown(table: str, name: str, row: Any) -> bool:
    start = f"| {name} | {with_spread(row.accuracy, row.spread)}"
    ends = f"{start} |", f"{start} (", f"{start}, "  # alone, with a note, of fewer seeds
    return any(line.startswith(ends) for line in table.splitlines())
