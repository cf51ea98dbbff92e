"""A step of training on the digits, outside a run."""

from __future__ import annotations

from typing import Any

import torch

from quadspike.training import Recipe, TrainingData, make_data
from quadspike.training.distributed import Workers
from quadspike.training.network import make_network
from quadspike.training.schedule import make_optimizer
from quadspike.training.step import Step
from quadspike.training.trainee import Trainee

CPU = torch.device("cpu")


def tiny(**changes: Any) -> Recipe:
    return Recipe("tiny", "digits", "mlp", epochs=2, batch_size=256, lr=0.05).but(**changes)


def step_of(recipe: Recipe) -> tuple[Step, TrainingData]:
    """The recipe's first step, and its data."""
    data = make_data(recipe, None, CPU, Workers())
    trainee = Trainee(make_network(recipe, data.geometry).train(), recipe)
    return step_with(trainee, recipe, len(data.train)), data


def step_with(trainee: Trainee, recipe: Recipe, per_epoch: int) -> Step:
    return Step(trainee, recipe, make_optimizer(recipe, trainee), Workers(), CPU, per_epoch)
