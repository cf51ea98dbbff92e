"""Folders as training leaves them, with plausible numbers and no training."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from quadspike import create_neuron
from quadspike.records.metrics import summarise
from quadspike.training.recipe import Recipe

DIGITS = ("conv1.soma", "conv2.soma", "conv3.soma")
RESNET19 = (
    "stem.soma",
    *(
        f"layer{stage}.{block}.{part}.soma"
        for stage, blocks in ((1, 3), (2, 3), (3, 2))
        for block in range(blocks)
        for part in (("first", "shortcut", "second") if block == 0 else ("first", "second"))
    ),
    "hidden.soma",
)
_LAYERS = {"cnn": DIGITS, "resnet19": RESNET19}


def make_run(
    folder: Path,
    *,
    layers: tuple[str, ...] | None = None,
    finished: bool = True,
    done: int | None = None,
    warnings: tuple[str, ...] = (),
    seed: int = 0,
    **changes: Any,
) -> Path:
    """A run of the digits unless the recipe's fields in `changes` say otherwise."""
    fields = {"name": "digits-qif", "dataset": "digits", "model": "cnn", "epochs": 12, **changes}
    recipe = Recipe.from_dict({"timesteps": 4, "validation": 200, **fields})
    names = layers or _LAYERS[recipe.model]
    rng = np.random.default_rng(seed)
    metrics = [_epoch(recipe, n, names, rng) for n in range(1, (done or recipe.epochs) + 1)]
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "recipe.json", {"format": 1, "recipe": recipe.as_dict()})
    lines = "".join(json.dumps(line) + "\n" for line in metrics)
    (folder / "metrics.jsonl").write_text(lines, encoding="utf-8")
    if finished:
        record = _record(recipe, metrics, names, rng) | {"warnings": list(warnings)}
        _write(folder / "record.json", record)
    return folder


def change_record(folder: Path, **parts: Any) -> None:
    """Put other values into a run's record."""
    path = folder / "record.json"
    _write(path, json.loads(path.read_text(encoding="utf-8")) | parts)


def _write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=1), encoding="utf-8")


def _epoch(
    recipe: Recipe, n: int, layers: tuple[str, ...], rng: np.random.Generator
) -> dict[str, Any]:
    gone = math.exp(-4.5 * n / recipe.epochs)
    loss = 0.05 + 2.2 * gone + 0.03 * rng.random()
    accuracy = 0.975 - 0.8 * gone * math.exp(-n / 8) - 0.01 * rng.random()
    held_out = {"validation_loss": 1.1 * loss, "validation_accuracy": accuracy - 0.006}
    judged = {
        "test_loss": 1.15 * loss + 0.04,
        "test_accuracy": accuracy - 0.004,
        **(held_out if recipe.validation else {}),
        "rates": {name: _rate(i, layers, gone) for i, name in enumerate(layers)},
        "window": {name: 0.62 - 0.2 * gone - 0.006 * i for i, name in enumerate(layers)},
    }
    return {
        "epoch": n,
        "step": 12 * n,
        "lr": recipe.lr / 2 * (1 + math.cos(math.pi * n / recipe.epochs)),
        "train_loss": loss,
        "train_accuracy": min(1.0, accuracy + 0.02 * n / recipe.epochs),
        **(judged if recipe.evaluates(n) else {}),
        "grad_norm": 0.4 + 2 * gone + 0.1 * rng.random(),
        "seconds": 1.4 * n,
        "images_per_second": 1150.0 + 20 * rng.random(),
    }


def _rate(i: int, layers: tuple[str, ...], gone: float = 0.0) -> float:
    return 0.08 + 0.12 * math.cos(7 * i / len(layers)) ** 2 + 0.1 * gone


def _record(
    recipe: Recipe,
    metrics: list[dict[str, Any]],
    names: tuple[str, ...],
    rng: np.random.Generator,
) -> dict[str, Any]:
    neuron = create_neuron(recipe.neuron_config())
    window = [float(end) for end in neuron.surrogate.window(neuron)]
    energy = [row for i, name in enumerate(names) for row in _energy(recipe, i, name, names)]
    total = sum(row["exact_energy_pj"] for row in energy) / 1e9
    somas = sum(row["exact_energy_pj"] for row in energy if row["neurons"]) / 1e9
    synapses, one_mac = total - somas, somas / neuron.macs_per_step
    judged = [line for line in metrics if recipe.evaluates(line["epoch"])]
    return {
        "format": 1,
        "name": recipe.name,
        "recipe": recipe.as_dict(),
        "parameters": 12_628_426 if len(names) > 5 else 9_498,
        "environment": {
            "quadspike": "0.1.0",
            "commit": "ea763a5",
            "clean": True,
            "source": hashlib.sha256(b"source").hexdigest(),
            "python": "3.11.9",
            "torch": "2.13.0",
            "triton": None,
            "cuda": None,
            "device": "cpu",
            "workers": 1,
            "system": "Linux",
        },
        "earlier_environments": [],
        "kernels": None,
        "notes": [],
        "metrics": metrics,
        "summary": {
            **summarise(recipe, [*metrics[:-1], {**judged[-1], "epoch": metrics[-1]["epoch"]}]),
            "status": "finished" if len(metrics) == recipe.epochs else "stopped",
            "evaluated_epoch": judged[-1]["epoch"],
            "seconds": metrics[-1]["seconds"],
            "seconds_spent_on": {
                "start": 0.05,
                "data": 0.1,
                "network": 0.2,
                "evaluation": 0.3,
                "steps": metrics[-1]["seconds"] - 0.65,
            },
            "peak_memory_gib": 4.21 if len(names) > 5 else None,
            "firing_rate": sum(_rate(i, names) for i in range(len(names))) / len(names),
            "energy_mj": total,
            "energy_as_lif_mj": synapses + one_mac,
            "energy_as_qif_mj": synapses + 2 * one_mac,
            "energy_ann_mj": 6 * total,
        },
        "layers": [_layer(recipe, i, names, window, rng) for i in range(len(names))],
        "energy": energy,
        "neuron": neuron.config(),
        "weights": {
            f"{which}.safetensors": hashlib.sha256(which.encode()).hexdigest()
            for which in ("last", "best")
        },
    }


def _layer(
    recipe: Recipe, i: int, names: tuple[str, ...], window: list[float], rng: np.random.Generator
) -> dict[str, Any]:
    membranes = rng.normal(0.03, 0.42 + 0.01 * i, 20_000)
    counts, _ = np.histogram(membranes, bins=120, range=(-3, 3))
    rate = _rate(i, names)
    return {
        "layer": names[i],
        "neuron": recipe.neuron,
        "rate": rate,
        "rate_by_step": [rate * (0.8 + 0.1 * t) for t in range(recipe.timesteps)],
        "inside_window": float(np.mean((membranes >= window[0]) & (membranes <= window[1]))),
        "mean": float(membranes.mean()),
        "largest": float(np.abs(membranes).max()),
        "window": window,
        "threshold": 0.5,
        "edges": [0.5],
        "histogram": {"low": -3.0, "high": 3.0, "counts": counts.tolist()},
    }


def _energy(recipe: Recipe, i: int, name: str, names: tuple[str, ...]) -> list[dict[str, Any]]:
    synapse = name.removesuffix(".soma") + ".synapse"
    neurons = 2048 >> min(i, 3)
    macs = neurons * (2 if recipe.neuron == "qif" else 1)
    rate = _rate(i, names)
    acs = 0 if i == 0 else 294_912
    synaptic = 84_787.2 if i == 0 else recipe.timesteps * rate * 0.9 * acs
    own = recipe.timesteps * 4.6 * macs
    return [
        {
            "layer": synapse,
            "kind": "conv",
            "neurons": 0,
            "macs": 18_432 if i == 0 else 0,
            "acs": acs,
            "rate": None if i == 0 else rate,
            "energy_pj": synaptic,
            "exact_energy_pj": 0.96 * synaptic,
            "exact_ops": 0.96 * synaptic / (4.6 if i == 0 else 0.9),
            "flags": ["real", "once"] if i == 0 else [],
        },
        {
            "layer": name,
            "kind": recipe.neuron,
            "neurons": neurons,
            "macs": macs,
            "acs": 0,
            "rate": rate,
            "energy_pj": own,
            "exact_energy_pj": own,
            "exact_ops": recipe.timesteps * macs,
            "flags": [],
        },
    ]
