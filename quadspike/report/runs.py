"""A run as its folder tells it: recipe, epochs and, once it has ended, the record."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from quadspike.errors import QuadspikeError
from quadspike.report.shapes import build
from quadspike.training.recipe import Recipe

FORMAT = 1

T = TypeVar("T")


@dataclass(frozen=True)
class Epoch:
    """One line of `metrics.jsonl`; accuracies and rates are shares, `seconds` since the start.

    An epoch that was not evaluated has NaN for what samples held out and of the test set gave.
    """

    epoch: int
    step: int
    lr: float
    train_loss: float
    train_accuracy: float
    seconds: float
    images_per_second: float
    test_loss: float = math.nan
    test_accuracy: float = math.nan
    validation_loss: float = math.nan
    validation_accuracy: float = math.nan
    grad_norm: float = math.nan
    rates: dict[str, float] = field(default_factory=dict)
    window: dict[str, float] = field(default_factory=dict)
    """By layer: the share of membranes inside the surrogate's window."""


@dataclass(frozen=True)
class Summary:
    """The run in a few numbers; energies are of one inference, NaN where none could be counted."""

    status: str
    epochs: int
    seconds: float
    test_accuracy: float
    best_test_accuracy: float
    best_epoch: int
    best_chosen_on: str
    validation_accuracy: float | None
    images_per_second: float
    peak_memory_gib: float | None
    seconds_spent_on: dict[str, float] = field(default_factory=dict)
    evaluated_epoch: int | None = None
    """The epoch of `test_accuracy`; the last where it is not said."""
    firing_rate: float = math.nan
    energy_mj: float = math.nan
    energy_as_lif_mj: float = math.nan
    energy_as_qif_mj: float = math.nan
    energy_ann_mj: float = math.nan


@dataclass(frozen=True)
class Histogram:
    """Counts in equal bins from `low` to `high`."""

    low: float
    high: float
    counts: tuple[int, ...]

    def __post_init__(self) -> None:
        if not (self.low < self.high and self.counts and min(self.counts) >= 0):
            raise QuadspikeError("a histogram needs low < high and counts that are >= 0")


@dataclass(frozen=True)
class Layer:
    """One layer of neurons at the end of the run."""

    layer: str
    neuron: str
    rate: float
    rate_by_step: tuple[float, ...]
    inside_window: float
    mean: float
    largest: float
    window: tuple[float, float]
    threshold: float
    histogram: Histogram
    edges: tuple[float, ...] = ()
    """The membranes at which the spike changes, where they are not the threshold alone."""


@dataclass(frozen=True)
class LayerEnergy:
    """What one layer costs an inference, in pJ."""

    layer: str
    kind: str
    neurons: int
    macs: int
    acs: int
    rate: float | None
    energy_pj: float
    exact_energy_pj: float | None
    flags: tuple[str, ...]


@dataclass(frozen=True)
class Record:
    """What `record.json` says beyond the recipe and the epochs."""

    parameters: int
    environment: dict[str, Any]
    summary: Summary
    layers: tuple[Layer, ...]
    energy: tuple[LayerEnergy, ...]
    neuron: dict[str, Any] | None
    warnings: tuple[str, ...]
    weights: dict[str, str]
    notes: tuple[str, ...] = ()
    earlier_environments: tuple[dict[str, Any], ...] = ()
    """Of parts of the run that were made with or on something else than the last."""


@dataclass(frozen=True)
class Run:
    """`record` is None while the run is under way, or if it was killed."""

    path: Path
    name: str
    recipe: Recipe
    epochs: tuple[Epoch, ...]
    record: Record | None

    @property
    def last(self) -> Epoch | None:
        """The last finished epoch."""
        return self.epochs[-1] if self.epochs else None

    @property
    def judged(self) -> Epoch | None:
        """The last epoch that was evaluated."""
        known = [epoch for epoch in self.epochs if math.isfinite(epoch.test_accuracy)]
        return known[-1] if known else None


def read_run(path: str | Path) -> Run:
    """The run in the folder `path`, or in the record file `path`; no weights are read."""
    place = Path(path)
    record, recipe = place / "record.json", place / "recipe.json"
    if place.is_file():
        return _read_record(place)
    if record.is_file() and _in_file(record, lambda: _parse(record).get("metrics")) != []:
        return _read_record(record)
    if recipe.is_file():
        plan = _in_file(recipe, lambda: _recipe(_parse(recipe)))
        return Run(place, plan.name, plan, _read_metrics(place / "metrics.jsonl"), None)
    problem = "is no run: it holds neither record.json nor recipe.json"
    raise QuadspikeError(
        f"{place} {problem if place.is_dir() else 'does not exist'}; "
        "give a folder that training wrote"
    )


def _read_record(path: Path) -> Run:
    def read() -> Run:
        content = _parse(path)
        epochs = content.get("metrics")
        return Run(
            path if path.name != "record.json" else path.parent,
            build(str, content.get("name"), "name"),
            _recipe(content if "recipe" in content else _parse(path.with_name("recipe.json"))),
            # The records of a repository have their epochs in a file of their own.
            _read_metrics(path.with_name("metrics.jsonl"))
            if epochs is None
            else _in_order(build(tuple[Epoch, ...], epochs, "metrics")),
            build(Record, content),
        )

    return _in_file(path, read)


def _read_metrics(path: Path) -> tuple[Epoch, ...]:
    if not path.exists():
        return ()
    lines = _in_file(path, lambda: path.read_text(encoding="utf-8")).split("\n")
    # What follows the last line's end is still being written.
    epochs = [
        _in_file(path, partial(_epoch, line), number)
        for number, line in enumerate(lines[:-1], start=1)
        if line.strip()
    ]
    return _in_order(tuple(epochs))


def _epoch(line: str) -> Epoch:
    epoch: Epoch = build(Epoch, json.loads(line))
    return epoch


def _in_order(epochs: tuple[Epoch, ...]) -> tuple[Epoch, ...]:
    """By number; of an epoch that was repeated after a kill, the last."""
    latest = {epoch.epoch: epoch for epoch in epochs}
    return tuple(latest[number] for number in sorted(latest))


def _parse(path: Path) -> dict[str, Any]:
    content = build(dict[str, Any], json.loads(path.read_text(encoding="utf-8")))
    version = build(int, content.get("format"), "format")
    if version != FORMAT:
        raise QuadspikeError(
            f"it has format {version}, this version of quadspike reads format {FORMAT}; "
            "use the version that wrote it"
        )
    return dict(content)


def _recipe(content: dict[str, Any]) -> Recipe:
    return Recipe.from_dict(build(dict[str, Any], content.get("recipe"), "recipe"))


def _in_file(path: Path, read: Callable[[], T], line: int | None = None) -> T:
    """`read()`, with every complaint naming the file."""
    where = f"{path}, line {line}" if line else f"{path}"
    try:
        return read()
    except OSError as error:
        raise QuadspikeError(f"cannot read {where}: {error.strerror or error}") from None
    except QuadspikeError as error:
        raise QuadspikeError(f"cannot use {where}: {error}") from None
    except (ValueError, TypeError, RecursionError) as error:
        raise QuadspikeError(f"{where} is damaged: {error}") from None
