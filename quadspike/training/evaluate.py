"""A run's evaluation once more, from its saved weights."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quadspike.data.split import Split
from quadspike.errors import QuadspikeError, check_count, check_name
from quadspike.models import Network, load_model
from quadspike.models.files import hold_initial_membranes, read_tensors
from quadspike.neurons import NEURONS
from quadspike.norms import NORMS
from quadspike.training.datasets import choose_data
from quadspike.training.distributed import Workers, choose_device
from quadspike.training.folder import RunFolder
from quadspike.training.network import load_weights, to_device
from quadspike.training.recipe import Recipe
from quadspike.training.reproducible import algorithms
from quadspike.training.scoring import Score, score
from quadspike.training.sources import TrainingData


@dataclass(frozen=True)
class Evaluation:
    """A fresh score, and what the run had noted of the same weights."""

    fresh: Score
    recorded: float | None
    weights: Path
    stopped: str = ""
    """Where a run was stopped before its end; empty of one that has come to it."""


def evaluate(
    run: str | Path,
    *,
    weights: str = "last",
    model: Network | None = None,
    data: TrainingData | tuple[Split, Split] | None = None,
    device: str = "auto",
    data_root: str | Path | None = None,
    backend: str = "auto",
    timesteps: int | None = None,
) -> Evaluation:
    """Score a run's saved weights on every test sample; `model` for one's own network.

    With `timesteps` static images are shown so many steps instead of the recipe's.
    """
    check_name("weights", weights, ("last", "best"))
    folder = RunFolder(Path(run))
    own = model is not None
    recipe = folder.read_recipe() if own else folder.read_packaged("give it as model=")
    path = folder.ended_weights(weights)
    if data is None:
        folder.check_loaded("give them as data=")
    place = choose_device(device, Workers())
    asked = {} if timesteps is None else {"timesteps": check_count("timesteps", timesteps)}
    if asked and model is not None:
        raise QuadspikeError("timesteps is for the recipe's own network; set model.timesteps")
    with algorithms(recipe.deterministic):
        found = choose_data(recipe, data, data_root, place, Workers())
        if asked:
            _check_steps(recipe, asked["timesteps"], found.geometry.static)
        if model is None:
            model = load_model(path, backend=backend, **asked)
        else:
            if recipe.aid == "imp":
                hold_initial_membranes(model, read_tensors(path))
            load_weights(model.double() if recipe.precision == "fp64" else model, path)
        fresh = score(to_device(model, place), found.test, recipe, place, Workers())
    summary = _summary(folder)
    noted = _recorded(summary, weights) if timesteps in (None, recipe.timesteps) else None
    return Evaluation(fresh, noted, path, _stopped(summary, recipe.epochs))


def _check_steps(recipe: Recipe, timesteps: int, static: bool) -> None:
    """Refuse another number of steps where the data or the network have just theirs."""
    if not static:
        raise QuadspikeError(
            f"timesteps={timesteps} is for static images; a recording of {recipe.dataset} has "
            f"{recipe.timesteps} frames, as many as its steps"
        )
    parts: tuple[Any, ...] = (NEURONS[recipe.neuron], NORMS[recipe.norm])
    for part in parts:
        if part.per_step and timesteps != recipe.timesteps:
            raise QuadspikeError(
                f"timesteps={timesteps}, but {part.name} {part.per_step} and was trained with "
                f"{recipe.timesteps} of them; leave timesteps out"
            )


def _summary(folder: RunFolder) -> dict[str, Any]:
    """Of the run's record; empty without one."""
    try:
        found = json.loads(folder.record.read_text(encoding="utf-8"))["summary"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}


def _recorded(summary: dict[str, Any], weights: str) -> float | None:
    if weights == "last" and summary.get("steps_beyond"):
        return None  # stopped within an epoch: nothing was noted of these weights
    found: float | None = summary.get(
        "test_accuracy" if weights == "last" else "best_test_accuracy"
    )
    return found


def _stopped(summary: dict[str, Any], epochs: int) -> str:
    """In words.

    >>> _stopped({"status": "stopped", "epochs": 2, "steps_beyond": 7}, 25)
    'in epoch 3 of 25'
    """
    if summary.get("status") != "stopped":
        return ""
    if summary.get("steps_beyond"):
        return f"in epoch {summary['epochs'] + 1} of {epochs}"
    return f"after epoch {summary['epochs']} of {epochs}"
