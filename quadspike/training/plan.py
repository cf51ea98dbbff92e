"""What a run would take, before it starts."""

from __future__ import annotations

import copy
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median

import torch
from torch import Tensor

from quadspike.data.geometry import Geometry
from quadspike.models import Network
from quadspike.training.datasets import make_data
from quadspike.training.distributed import Workers
from quadspike.training.manner import Manner
from quadspike.training.memory import GIB, need
from quadspike.training.network import check_small, count_parameters, make_network, to_device
from quadspike.training.recipe import Recipe
from quadspike.training.reproducible import algorithms
from quadspike.training.samples import random_batch
from quadspike.training.schedule import make_optimizer
from quadspike.training.sizes import TRAINING_SAMPLES, check_sizes, known_geometry
from quadspike.training.step import Step
from quadspike.training.trainee import Trainee

_ENOUGH = 0.5
"""Seconds of a step that are worth timing; on a GPU it is the whole batch."""


@dataclass(frozen=True)
class Plan:
    """An estimate; time is that of the steps, measured on this device."""

    parameters: int
    steps_per_epoch: int
    steps: int
    seconds: float
    memory_gib: float


def estimate(recipe: Recipe, device: torch.device, workers: Workers) -> Plan:
    """Time a step on random data and count what it keeps; needs none of the large data sets."""
    geometry, samples = _shape(recipe, device)
    model = to_device(make_network(recipe, geometry), device)
    check_small(model, recipe, geometry, device)
    per_epoch = samples // recipe.batch_size
    share = workers.share_of(recipe.batch_size)
    at_once = share // recipe.accumulate
    with algorithms(recipe.deterministic):
        needed = need(model, recipe, geometry, device)
        measured = partial(Measured, model, recipe, geometry, device)
        epochs = Counter(recipe.manner_in(epoch) for epoch in range(recipe.epochs))
        seconds = recipe.epochs * measured(recipe.manner_in(0)).update_seconds(at_once)
        for manner, count in epochs.items():
            seconds += count * share * measured(manner).sample_seconds(at_once)
    return Plan(
        count_parameters(model),
        per_epoch,
        per_epoch * recipe.epochs,
        seconds * per_epoch,
        needed.of(at_once) / GIB,
    )


def _shape(recipe: Recipe, device: torch.device) -> tuple[Geometry, int]:
    """The form of a sample and how many there are to train on; known without the files."""
    check_sizes(recipe)
    if geometry := known_geometry(recipe):
        return geometry, TRAINING_SAMPLES[recipe.dataset] - recipe.validation
    data = make_data(recipe, None, device, Workers())
    return data.geometry, data.sizes.train


@dataclass(frozen=True)
class Measured:
    """Steps of copies of the model, timed on random samples."""

    model: Network
    recipe: Recipe
    geometry: Geometry
    device: torch.device
    manner: Manner

    def sample_seconds(self, most: int) -> float:
        """The time a sample's gradient takes; on a CPU of as few samples as will tell."""
        count = self._first(most)
        while True:
            step, batch = self._step(count)
            seconds = self._median(partial(step.gradients, *batch))
            if seconds >= _ENOUGH or count == most:
                return seconds / count
            count = min(4 * count, most)

    def update_seconds(self, most: int) -> float:
        """The time a step takes beyond its gradient, however many samples it has."""
        step, batch = self._step(self._first(most))
        gradient = self._median(partial(step.gradients, *batch))
        return max(0.0, self._median(partial(step, *batch)) - gradient)

    def step_seconds(self, count: int) -> float:
        """The time of a whole step on `count` samples."""
        step, batch = self._step(count)
        return self._median(partial(step, *batch))

    def _first(self, most: int) -> int:
        return most if self.device.type == "cuda" else min(2, most)

    def _step(self, count: int) -> tuple[Step, tuple[Tensor, Tensor]]:
        plain = self.recipe.but(accumulate=1)
        trainee = Trainee(copy.deepcopy(self.model), plain)
        trainee.manner = self.manner
        optimizer = make_optimizer(plain, trainee)
        step = Step(trainee, plain, optimizer, Workers(), self.device, 1)
        return step, random_batch(self.recipe, self.geometry, count, self.device)

    def _median(self, work: Callable[[], None]) -> float:
        times = []
        for _ in range(2 + 3):
            wait(self.device)
            start = time.perf_counter()
            work()
            wait(self.device)
            times.append(time.perf_counter() - start)
        return median(times[2:])


def deterministic_cost(
    model: Network, recipe: Recipe, geometry: Geometry, device: torch.device, count: int
) -> float:
    """How many times longer a step takes with algorithms that repeat bit for bit."""
    seconds = []
    for deterministic in (True, False):
        with algorithms(deterministic):
            step = Measured(model, recipe, geometry, device, recipe.manner_in(0))
            seconds.append(step.step_seconds(count))
    return seconds[0] / seconds[1]


def wait(device: torch.device) -> None:
    """Until the device has done all it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
