"""The part that trains for real: what the loop around the steps costs."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from quadspike.benchmark.contenders import best_own
from quadspike.benchmark.record import Row
from quadspike.benchmark.setting import Job, attempt
from quadspike.benchmark.steps import time_step
from quadspike.data.augment import cifar_test, cifar_train
from quadspike.data.geometry import GEOMETRIES
from quadspike.data.split import Split
from quadspike.training.distributed import Workers
from quadspike.training.observer import Moment, Observer
from quadspike.training.plan import wait
from quadspike.training.sources import TrainingData, from_splits
from quadspike.training.start import train

IMAGES = 50_000
_EPOCHS = 3


class _Watch(Observer):
    """When each look at the run happened, each epoch's end, and the last checkpoint's."""

    def __init__(self) -> None:
        self.looks: list[tuple[int, int, float]] = []
        self.ends: list[float] = []
        self.saving = 0.0

    def moment(self, now: Moment) -> None:
        self.looks.append((now.epoch, now.step, time.perf_counter()))

    def epoch(self, metrics: dict[str, Any]) -> None:
        self.ends.append(time.perf_counter())

    def saved(self, step: int) -> None:
        # The last is at the run's end, right after its last epoch.
        self.saving = time.perf_counter() - self.ends[-1]


def epoch(job: Job) -> Iterator[Row]:
    """The last of a few epochs on random images in memory: its steps, and then all of it."""
    watch = _Watch()
    first = attempt(job, "epoch", "a step within an epoch of training", lambda: _epoch(job, watch))
    yield first
    if "error" not in first:
        title = "the epoch with its evaluation, and a checkpoint"
        yield attempt(job, "whole epoch", title, lambda: _whole(job, watch, first))


def _epoch(job: Job, watch: _Watch) -> Row:
    step = time_step(job, best_own(job.device))
    recipe = job.setting.recipe.but(epochs=_EPOCHS)
    images = _images(job)
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
        "images": images,
        "images_per_second": 1e3 * recipe.batch_size / loop_ms,
    }


def _whole(job: Job, watch: _Watch, steps: Row) -> Row:
    """Where the time of an epoch goes; `saving_seconds` is of a checkpoint and comes on top."""
    *_, last = watch.looks
    seconds = watch.ends[-1] - watch.ends[-2]
    return {
        "ms": 1e3 * seconds,
        "steps_seconds": steps["step_ms"] * steps["steps"] / 1e3,
        "augmentation_seconds": _augmentation(job),
        "evaluation_seconds": watch.ends[-1] - last[2],
        "evaluated": _images(job) // 5,
        "saving_seconds": watch.saving,
        "images_per_second": steps["images"] / seconds,
    }


def _augmentation(job: Job) -> float:
    """Going through all batches without learning from them, the second time."""
    source = _random_data(job, _images(job)).train
    for number in range(2):
        wait(job.device)
        begin = time.perf_counter()
        for _ in source.epoch(number):
            pass
        wait(job.device)
    return time.perf_counter() - begin


def _images(job: Job) -> int:
    return 5 * job.setting.recipe.batch_size if job.smoke else IMAGES


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
