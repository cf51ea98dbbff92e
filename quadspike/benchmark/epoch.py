"""The part that trains for real: what the loop around the steps costs."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from quadspike.benchmark.contenders import best_own
from quadspike.benchmark.job import Job, attempt
from quadspike.benchmark.record import Row
from quadspike.benchmark.steps import time_step
from quadspike.data.augment import cifar_test, cifar_train
from quadspike.data.geometry import GEOMETRIES
from quadspike.data.split import Split
from quadspike.training.distributed import Workers
from quadspike.training.loop import train
from quadspike.training.observer import Moment, Observer
from quadspike.training.sources import TrainingData, from_splits

IMAGES = 50_000
_EPOCHS = 3


class _Watch(Observer):
    """When each look at the run happened, and each epoch's end."""

    def __init__(self) -> None:
        self.looks: list[tuple[int, int, float]] = []
        self.ends: list[float] = []

    def moment(self, now: Moment) -> None:
        self.looks.append((now.epoch, now.step, time.perf_counter()))

    def epoch(self, metrics: dict[str, Any]) -> None:
        self.ends.append(time.perf_counter())


def epoch(job: Job) -> Iterator[Row]:
    """The last of a few epochs on random images in memory, against its steps alone."""
    yield attempt(job, "epoch", "an epoch of training", lambda: _epoch(job))


def _epoch(job: Job) -> Row:
    step = time_step(job, best_own(job.device))
    watch = _Watch()
    recipe = job.setting.recipe.but(epochs=_EPOCHS)
    images = 5 * recipe.batch_size if job.smoke else IMAGES
    with tempfile.TemporaryDirectory() as folder:
        train(
            recipe,
            data=_random_data(job, images),
            out=Path(folder) / "run",
            device=str(job.device),
            observers=[watch],
        )
    looks = [(step, when) for number, step, when in watch.looks if number == _EPOCHS]
    (first, began), (last, ended) = looks[0], looks[-1]
    loop_ms = 1e3 * (ended - began) / (last - first)
    return {
        "ms": loop_ms,
        "step_ms": step["ms"],
        "overhead": loop_ms / step["ms"] - 1,
        "steps": last,
        "steps_seconds": loop_ms * last / 1e3,
        "epoch_seconds": watch.ends[-1] - watch.ends[-2],
        "images": images,
        "images_per_second": 1e3 * recipe.batch_size / loop_ms,
    }


def _random_data(job: Job, images: int) -> TrainingData:
    """Bytes of the setting's shape; CIFAR's are augmented as for real."""
    geometry, recipe = job.setting.geometry, job.setting.recipe
    names = tuple(str(number) for number in range(geometry.classes))
    lead = () if geometry.static else (recipe.timesteps,)

    def split(count: int) -> Split:
        shape = (count, *lead, *geometry.frame)
        inputs = torch.randint(256, shape, dtype=torch.uint8, device=job.device)
        labels = torch.arange(count, device=job.device) % geometry.classes
        return Split("noise", inputs, labels, names)

    parts = (recipe, split(images), split(images // 5), job.device, Workers())
    if geometry == GEOMETRIES["cifar10"]:
        return from_splits(*parts, cifar_train("cifar10"), cifar_test("cifar10"))
    return from_splits(*parts)
