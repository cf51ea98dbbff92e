"""What the record of a run says, and whether it follows."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from quadspike.analysis.energy.report import COSTS_45NM, EnergyReport, EnergyRow
from quadspike.errors import QuadspikeError
from quadspike.json_table import from_table
from quadspike.records.command import check_command
from quadspike.records.metrics import check_epochs, check_share, check_spending, summarise
from quadspike.records.source import Repository, prove
from quadspike.records.store import Files
from quadspike.training.folder import FORMAT
from quadspike.training.recipe import Recipe
from quadspike.training.record import BILLED, totals
from quadspike.training.sizes import TEST_SAMPLES

RECIPE, METRICS, RECORD = "recipe.json", "metrics.jsonl", "record.json"
TABLES = 2
"""The format of records that hold epochs, layers and energies as tables; in older ones each row
names what it holds.
"""
_SHA256 = re.compile(r"[0-9a-f]{64}")

T = TypeVar("T")


@dataclass(frozen=True)
class RunRecord:
    """What the files of a record say."""

    name: str
    recipe: Recipe
    metrics: list[dict[str, Any]]
    content: dict[str, Any]

    @property
    def summary(self) -> dict[str, Any]:
        found: dict[str, Any] = self.content["summary"]
        return found

    @property
    def first_weights(self) -> str | None:
        """The weights it started from, by their SHA-256; None for new ones."""
        first = self.content.get("init_from")
        return f"weights {first['sha256'][:8]}" if first else None


def read_record(name: str, files: Files) -> RunRecord:
    """A record from its files; what `record_run` gave."""
    if set(files) != {RECIPE, METRICS, RECORD}:
        raise QuadspikeError(f"a record of a run has {RECIPE}, {METRICS}, {RECORD} and no others")

    def read() -> RunRecord:
        recipe, content = json.loads(files[RECIPE]), json.loads(files[RECORD])
        if recipe["format"] != FORMAT or content["format"] not in (FORMAT, TABLES):
            raise QuadspikeError(f"it has another format than {FORMAT} or {TABLES}")
        lines = from_table([json.loads(line) for line in files[METRICS].splitlines()])
        content |= {key: from_table(content.get(key, ())) for key in ("layers", "energy")}
        return RunRecord(name, Recipe.from_dict(recipe["recipe"]), lines, content)

    return whole(read)


def whole(work: Callable[[], T]) -> T:
    """`work()`, where whatever is missing or of another kind in a file is that file's damage."""
    try:
        return work()
    except QuadspikeError:
        raise
    except Exception as error:  # whatever work on it ends with that holds something else
        raise QuadspikeError(f"it is damaged: {type(error).__name__} {error}") from None


def headline(summary: Mapping[str, Any], exported: dict[str, Any] | None) -> dict[str, Any]:
    """The figure of a record, and of which weights it is."""
    if exported is None:
        return {"accuracy": summary["test_accuracy"], "accuracy_of": "the last epoch"}
    return {
        "accuracy": exported["evaluation"]["accuracy"],
        "accuracy_of": f"the last epoch's weights in {exported['dtype']}",
    }


def choices(recipe: Recipe) -> dict[str, str]:
    """On what a run's epochs were chosen, in words."""
    judge = (
        f"{recipe.validation:,} held-out training samples" if recipe.validation else "the test set"
    )
    often = f", every {recipe.evaluate_every} epochs" if recipe.evaluate_every > 1 else ""
    return {"headline": "none: the last epoch", "best epoch": judge + often}


def device(content: Mapping[str, Any]) -> str:
    """What a run was made on; all of it, where its parts were made on several."""
    parts = [*content.get("earlier_environments", ()), content["environment"]]
    named = (
        f"{part['workers']} x {part['device']}" if part["workers"] > 1 else str(part["device"])
        for part in parts
    )
    return " and ".join(dict.fromkeys(named))


def _check_source(content: Mapping[str, Any], repository: Repository) -> None:
    environment = content["environment"]
    for part in content.get("earlier_environments", ()):
        if part["source"] != environment["source"]:
            raise QuadspikeError(
                "a part of the run was made with another source than the last one, "
                f"{part['source'][:10]}... for {environment['source'][:10]}...; train it with one"
            )
    prove(environment, content["commit"], repository)


def check_run(record: RunRecord, repository: Repository) -> None:
    """Recompute what can be, and refuse what does not follow."""

    def check() -> None:
        content, summary = record.content, record.summary
        check_epochs(record.recipe, record.metrics, summary["seconds"])
        check_spending(summary)
        check_command(content["command"], record.recipe)
        if not (isinstance(content["parameters"], int) and content["parameters"] > 0):
            raise QuadspikeError(f"it has {content['parameters']!r} parameters")
        content["neuron"]  # is there, if only as None
        derived = {
            **summarise(record.recipe, record.metrics),
            **headline(summary, content["export"]),
            "device": device(content),
            "choices": choices(record.recipe),
        }
        for key, value in derived.items():
            if summary[key] != value:
                raise QuadspikeError(
                    f"its summary says {key} {summary[key]!r}, its files give {value!r}"
                )
        _check_energy(record)
        _check_weights(content, TEST_SAMPLES.get(record.recipe.dataset))
        _check_source(content, repository)

    whole(check)


def _check_energy(record: RunRecord) -> None:
    if not record.content["energy"]:
        if any(key in record.summary for key in BILLED):
            raise QuadspikeError("its summary states an energy, its layers have none")
        return
    rows = tuple(
        EnergyRow(**{**row, "flags": tuple(row["flags"])}) for row in record.content["energy"]
    )
    bill = EnergyReport(rows, record.recipe.timesteps, COSTS_45NM, "measured")
    rates = {layer["layer"]: layer["rate"] for layer in record.content["layers"]}
    for key, value in totals(bill, rates).items():
        if not math.isclose(record.summary[key], value, rel_tol=1e-5):
            raise QuadspikeError(
                f"its summary says {key} {record.summary[key]:g}, its layers give {value:g}"
            )


def _check_weights(content: Mapping[str, Any], tested: int | None) -> None:
    weights, exported = content["weights"], content["export"]
    stated = [weights["last.safetensors"], *weights.values()]
    if (first := content.get("init_from")) is not None:
        stated.append(first["sha256"])
    if exported is not None:
        evaluation = exported["evaluation"]
        stated += [exported["sha256"], evaluation["sha256"], *exported["files"].values()]
        if exported["of"] != weights["last.safetensors"]:
            raise QuadspikeError("the exported weights are of another run")
        if evaluation["sha256"] != exported["sha256"]:
            raise QuadspikeError("the score of the exported weights is of other weights")
        if evaluation["count"] != (tested or evaluation["count"]):
            raise QuadspikeError(
                f"the exported weights were scored on {evaluation['count']:,} of {tested:,} samples"
            )
        for name in ("accuracy", "folded_accuracy"):
            check_share(name, evaluation.get(name, 0.0), evaluation["count"])
    for text in stated:
        if not _SHA256.fullmatch(text):
            raise QuadspikeError(f"the weights' SHA-256 must be 64 hexadecimal digits, got {text}")
