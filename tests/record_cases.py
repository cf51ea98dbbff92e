"""A repository with the package in it, and runs that were made with it where git was not."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import quadspike
from quadspike.recipes import create_recipe
from quadspike.records.runs import METRICS, RECIPE, RECORD
from quadspike.records.store import SUMS, Store, sums
from quadspike.training import Recipe, train


def tiny(**changes: Any) -> Recipe:
    """A run of less than a second."""
    recipe = Recipe("digits-mlp", "digits", "mlp", epochs=2, batch_size=256, lr=0.05)
    return recipe.but(**changes)


def make_repository(folder: Path) -> Path:
    """One commit with the package's source as it is now, and an empty folder of records."""
    package = Path(quadspike.__file__).parent
    shutil.copytree(
        package, folder / "quadspike", ignore=shutil.ignore_patterns("__pycache__", "*.npz")
    )
    (folder / "records").mkdir()
    git(folder, "init", "-q")
    commit(folder, "all")
    return folder


def commit(folder: Path, message: str, *options: str) -> str:
    """Commit everything; the commit's name."""
    git(folder, "add", "-A")
    who = ("-c", "user.name=nobody", "-c", "user.email=nobody@localhost")
    git(folder, *who, "commit", "-q", "--no-verify", "-m", message, *options)
    return git(folder, "rev-parse", "HEAD")


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def make_run(folder: Path, **changes: Any) -> Path:
    """A tiny run on the CPU, with an environment that knows no repository."""
    train(tiny(**changes), out=folder, device="cpu")
    change(folder / "record.json", ("environment", "commit"), None)
    change(folder / "record.json", ("environment", "clean"), None)
    return folder


def change(path: Path, keys: tuple[str | int, ...], value: Any) -> None:
    """Put another value into a JSON file."""
    content = json.loads(path.read_text())
    inner = content
    for key in keys[:-1]:
        inner = inner[key]
    assert keys[-1] in inner or isinstance(keys[-1], int)
    inner[keys[-1]] = value
    path.write_text(json.dumps(content))


def sum_anew(record: Path) -> None:
    """As a forger would."""
    files = {p.name: p.read_text() for p in record.iterdir() if p.name != SUMS}
    (record / SUMS).write_text(sums(files))


def put(
    store: Store, name: str, /, *curve: float, recipe: str = "cifar10-resnet19", **changes: Any
) -> None:
    """A record as far as tables and figures read it; `curve` is the accuracy of each epoch.

    Held-out images, if there are any, score a hundredth more than the test set. `content` is
    what record.json has besides.
    """
    device, seconds = changes.pop("device", "NVIDIA H200"), changes.pop("seconds", 1320.0)
    besides = changes.pop("content", {})
    setting = create_recipe(recipe, **changes)
    held = setting.validation > 0
    metrics = [
        {
            "epoch": epoch,
            "train_loss": 2 * (1 - accuracy),
            "test_accuracy": accuracy,
            **({"validation_accuracy": accuracy + 0.01} if held else {}),
        }
        for epoch, accuracy in enumerate(curve, 1)
    ]
    summary = {
        "accuracy": curve[-1],
        "test_accuracy": curve[-1],
        "validation_accuracy": curve[-1] + 0.01 if held else None,
        "best_test_accuracy": curve[-1] + 0.001,
        "seconds": seconds,
        "device": device,
        "firing_rate": 0.123,
        "energy_mj": 0.41,
    }
    content = {"format": 1, "summary": summary, "neuron": None, "export": None, **besides}
    files = {
        RECIPE: json.dumps({"format": 1, "recipe": setting.as_dict()}),
        METRICS: "".join(json.dumps(line) + "\n" for line in metrics),
        RECORD: json.dumps(content),
    }
    assert store.write("runs", name, files)
