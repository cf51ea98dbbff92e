"""A run as its folder tells it: recipe, epochs and, once it has ended, the record."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field, is_dataclass
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from quadspike.errors import QuadspikeError
from quadspike.json_table import from_table
from quadspike.training.folder import check_one_run
from quadspike.training.recipe import Recipe

FORMATS = (1, 2)
"""Of runs, and of records that hold rows as tables."""
_hints = cache(get_type_hints)

T = TypeVar("T")


@dataclass(frozen=True)
class Epoch:
    """One line of `metrics.jsonl`; accuracies and rates are shares, `seconds` since the start.

    An epoch that was not evaluated has NaN for what samples held out and of the test set gave.
    """

    epoch: int
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

    @property
    def thresholds(self) -> tuple[float, ...]:
        """All of them."""
        return self.edges or (self.threshold,)


@dataclass(frozen=True)
class LayerEnergy:
    """What one layer costs an inference, in pJ."""

    layer: str
    neurons: int
    energy_pj: float
    exact_energy_pj: float | None


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
    def judged(self) -> Epoch | None:
        """The last epoch that was evaluated."""
        known = [epoch for epoch in self.epochs if math.isfinite(epoch.test_accuracy)]
        return known[-1] if known else None


def read_run(path: str | Path) -> Run:
    """The run in the folder `path`, or in the record file `path`; no weights are read."""
    place = Path(path)
    if place.is_file() and place.name != "record.json":
        return _read_record(place)
    place = place.parent if place.is_file() else place
    record, recipe = place / "record.json", place / "recipe.json"
    if record.is_file() and _in_file(record, lambda: _parse(record).get("metrics")) != []:
        return _read_record(record)
    check_one_run(place)
    if recipe.is_file():
        plan = _in_file(recipe, lambda: Recipe.from_dict(_parse(recipe)["recipe"]))
        return Run(place, plan.name, plan, _read_metrics(place / "metrics.jsonl"), None)
    problem = "is no run: it holds neither record.json nor recipe.json"
    raise QuadspikeError(
        f"{place} {problem if place.is_dir() else 'does not exist'}; "
        "give a folder that training wrote"
    )


def build(kind: Any, value: Any) -> Any:
    """What JSON gave as `kind`: a number, a text, a tuple, a dict or a dataclass of those.

    Keys that a dataclass does not know are left aside. A null where a float belongs is NaN.

    >>> build(tuple[float, ...], [1, None])
    (1.0, nan)
    """
    arguments, origin = get_args(kind), get_origin(kind)
    if value is None:
        return math.nan if kind is float else None
    if origin is UnionType:
        (inner,) = (argument for argument in arguments if argument is not NoneType)
        return build(inner, value)
    if origin is tuple:
        kinds = arguments[:1] * len(value) if arguments[-1] is Ellipsis else arguments
        return tuple(map(build, kinds, value))
    if origin is dict:
        return {key: build(arguments[1], item) for key, item in value.items()}
    if isinstance(kind, type) and is_dataclass(kind):
        hints = _hints(kind).items()
        return kind(**{name: build(hint, value[name]) for name, hint in hints if name in value})
    return float(value) if kind is float else value


def _read_record(path: Path) -> Run:
    def read() -> Run:
        content = _parse(path)
        plan = content if "recipe" in content else _parse(path.with_name("recipe.json"))
        # The records of a repository have their epochs in a file of their own.
        epochs = content.get("metrics")
        content |= {key: from_table(content[key]) for key in ("layers", "energy")}
        return Run(
            path if path.name != "record.json" else path.parent,
            content["name"],
            Recipe.from_dict(plan["recipe"]),
            _read_metrics(path.with_name("metrics.jsonl"))
            if epochs is None
            else build(tuple[Epoch, ...], epochs),
            build(Record, content),
        )

    return _in_file(path, read)


def _read_metrics(path: Path) -> tuple[Epoch, ...]:
    def read() -> tuple[Epoch, ...]:
        lines = path.read_text(encoding="utf-8").splitlines()
        epochs: tuple[Epoch, ...] = build(tuple[Epoch, ...], from_table([*map(json.loads, lines)]))
        return epochs

    return _in_file(path, read) if path.exists() else ()


def _parse(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if content["format"] not in FORMATS:
        raise QuadspikeError(
            f"it has format {content['format']}, this version of quadspike reads up to "
            f"{FORMATS[-1]}; use the version that wrote it"
        )
    return content


def _in_file(path: Path, read: Callable[[], T]) -> T:
    """`read()`, with every complaint naming the file."""
    try:
        return read()
    except OSError as error:
        raise QuadspikeError(f"cannot read {path}: {error.strerror or error}") from None
    except QuadspikeError as error:
        raise QuadspikeError(f"cannot use {path}: {error}") from None
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise QuadspikeError(f"{path} is damaged: {type(error).__name__} {error}") from None
