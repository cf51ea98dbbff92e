"""The epochs of a run: kept small, checked, and what they come to."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from quadspike.errors import QuadspikeError
from quadspike.training.recipe import Recipe
from quadspike.training.schedule import learning_rate
from quadspike.training.sizes import TEST_SAMPLES, TRAINING_SAMPLES

Line = Mapping[str, Any]
"""One epoch, as `metrics.jsonl` has it."""

DIGITS = 6
LOOKS = 20
"""Epochs of which the layers are kept, evenly over the run."""
_EXACT = ("test_accuracy", "validation_accuracy", "seconds", "images_per_second")
BY_LAYER = ("rates", "window")


def rounded(value: Any) -> Any:
    """The same with fewer digits; what is reported and how long it took as it is.

    >>> rounded({"test_loss": 0.123456789, "test_accuracy": 0.123456789})
    {'test_loss': 0.123457, 'test_accuracy': 0.123456789}
    """
    if isinstance(value, Mapping):
        return {k: v if k in _EXACT else rounded(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item) for item in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def compact(metrics: Sequence[Line]) -> list[dict[str, Any]]:
    """The epochs with fewer digits, and the layers of at most `LOOKS` and the first of them."""
    known = [line["epoch"] for line in metrics if BY_LAYER[0] in line]
    looked = {*known[:1], *known[:: -max(1, math.ceil(len(known) / LOOKS))]}
    return [
        rounded({k: v for k, v in line.items() if line["epoch"] in looked or k not in BY_LAYER})
        for line in metrics
    ]


def as_lines(rows: Sequence[Any]) -> str:
    """As `metrics.jsonl` has it."""
    return "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)


def summarise(recipe: Recipe, metrics: Sequence[Line]) -> dict[str, Any]:
    """What follows from the epochs of a finished run, named as `finish` names it."""
    judge = "validation" if recipe.validation else "test"
    judged = [line for line in metrics if recipe.evaluates(line["epoch"])]
    last, best = metrics[-1], max(judged, key=lambda line: line[f"{judge}_accuracy"])
    return {
        "status": "finished",
        "epochs": len(metrics),
        "steps_beyond": 0,
        "best_chosen_on": judge,
        "evaluated_epoch": last["epoch"],
        "test_accuracy": last["test_accuracy"],
        "best_test_accuracy": best["test_accuracy"],
        "best_epoch": best["epoch"],
        "validation_accuracy": last.get("validation_accuracy"),
        "best_validation_accuracy": best.get("validation_accuracy"),
        "images_per_second": last["images_per_second"],
    }


def check_share(name: str, accuracy: float, count: int) -> None:
    """Refuse an accuracy that no number of so many samples has."""
    right = accuracy * count
    if not math.isclose(right, round(right), rel_tol=1e-9, abs_tol=1e-9):
        raise QuadspikeError(f"{name} {accuracy} is no share of {count:,}")


def check_epochs(recipe: Recipe, metrics: Sequence[Line], seconds: float) -> None:
    """Refuse epochs that no run of the recipe can have had."""
    epochs = [line["epoch"] for line in metrics]
    if len(epochs) != recipe.epochs or epochs != [*range(1, len(epochs) + 1)]:
        raise QuadspikeError(
            f"the recipe has {recipe.epochs} epochs, the metrics are not of each of them once"
        )
    per_epoch = metrics[0]["step"]
    if recipe.dataset in TEST_SAMPLES:
        steps = (TRAINING_SAMPLES[recipe.dataset] - recipe.validation) // recipe.batch_size
        if per_epoch != steps:
            raise QuadspikeError(f"an epoch has {per_epoch} steps, the data set gives {steps}")
    for line in metrics:
        _check_epoch(recipe, line, per_epoch)
    times = [0.0, *(line["seconds"] for line in metrics)]
    for number, (before, after) in enumerate(pairwise(times), 1):
        if not after >= before:
            raise QuadspikeError(f"epoch {number} ended after {after} s, before the one before")
    longest = max(after - before for before, after in pairwise(times))
    if not times[-1] <= seconds <= times[-1] + max(10.0, longest):
        raise QuadspikeError(
            f"the run took {seconds} s by its summary, {times[-1]} s by its last epoch"
        )


def check_spending(summary: Mapping[str, Any]) -> None:
    """Refuse parts of the time that are none, or not all of it; older records state no parts."""
    parts = summary.get("seconds_spent_on")
    if parts is None:
        return
    if not all(seconds >= 0 for seconds in parts.values()):
        raise QuadspikeError(f"a part of its time is below 0: {parts}")
    if not math.isclose(sum(parts.values()), summary["seconds"], abs_tol=0.01):
        raise QuadspikeError(
            f"the parts of its time come to {sum(parts.values()):.3f} s, its summary says "
            f"{summary['seconds']} s"
        )


def _check_epoch(recipe: Recipe, line: Line, per_epoch: int) -> None:
    where, evaluated = f"epoch {line['epoch']}", recipe.evaluates(line["epoch"])
    if line["step"] != line["epoch"] * per_epoch:
        raise QuadspikeError(f"{where} ends at step {line['step']}, of {per_epoch} an epoch")
    planned = learning_rate(recipe, line["step"] - 1, per_epoch)
    if not math.isclose(line["lr"], planned, rel_tol=1e-5):
        raise QuadspikeError(
            f"{where} has the learning rate {line['lr']:g}, the recipe gives {planned:g}"
        )
    if ("test_accuracy" in line) != evaluated:
        raise QuadspikeError(
            f"{where} was {'not ' * evaluated}evaluated, but the recipe evaluates the first, the "
            f"last and every {recipe.evaluate_every}"
        )
    counts: dict[str, int | None] = {"train_accuracy": None}
    if evaluated:
        counts["test_accuracy"] = TEST_SAMPLES.get(recipe.dataset)
    if evaluated and recipe.validation:
        counts["validation_accuracy"] = recipe.validation
    for name, count in counts.items():
        if not 0 <= line[name] <= 1:
            raise QuadspikeError(f"{where} has the {name} {line[name]}, which is no share")
        if count:
            check_share(f"{where}: {name}", line[name], count)
    if not math.isfinite(line["train_loss"]):
        raise QuadspikeError(f"{where} has the train_loss {line['train_loss']}")
