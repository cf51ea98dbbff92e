"""Epochs that train in another manner are captured anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from quadspike.training import Recipe
from quadspike.training.graph import CapturedStep
from quadspike.training.nonfinite import explain_non_finite
from tests.steps import step_of

SPIKES, GRADES = True, False


@pytest.mark.parametrize(
    ("fields", "first", "last"),
    [
        ({"train_timesteps": 1, "full_epochs": 1}, (1, 8, SPIKES), (3, 8, SPIKES)),
        ({"graded_epochs": 1}, (3, 8, GRADES), (3, 8, SPIKES)),
        ({"small_size": 4, "small_epochs": 1}, (3, 4, SPIKES), (3, 8, SPIKES)),
        ({"train_timesteps": 1, "graded_epochs": 1}, (1, 8, GRADES), (1, 8, SPIKES)),
    ],
    ids=["steps", "grades", "small images", "grades of one step"],
)
def test_what_was_captured_stays_as_it_was_until_the_manner_changes(
    fields: dict[str, Any],
    first: tuple[int, int, bool],
    last: tuple[int, int, bool],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def capture(work: Callable[[], None], pool: object) -> Callable[[], None]:
        """As a graph does, repeat what was captured."""
        manner = trainee.manner

        def replay() -> None:
            now, trainee.manner = trainee.manner, manner
            work()
            trainee.manner = now

        return replay

    monkeypatch.setattr("quadspike.training.graph.warm_up", lambda work, times=3: None)
    monkeypatch.setattr("quadspike.training.graph.capture", capture)
    recipe = Recipe("tiny", "digits", "cnn", timesteps=3, epochs=2, batch_size=32).but(**fields)
    step, data = step_of(recipe)
    trainee = step.trainee
    learn = CapturedStep(step)
    spikes: list[bool] = []
    shown: list[tuple[int, int, bool]] = []

    def fired(module: nn.Module, args: object, out: Tensor) -> None:
        spikes.append(bool(((out == 0) | (out == 1)).all()))

    def passed(module: nn.Module, args: tuple[Tensor, ...], out: Tensor) -> None:
        shown.append((len(out), args[0].shape[-1], spikes[-1]))

    next(iter(trainee.network.somas().values())).register_forward_hook(fired)
    trainee.network.register_forward_hook(passed)
    batch = next(iter(data.train.epoch(0)))
    for epoch in (0, 0, 1, 1):
        trainee.manner = recipe.manner_in(epoch)
        learn(*batch)
    assert shown == [first, first, last, last]


def test_a_spoilt_step_is_looked_at_in_its_own_manner() -> None:
    recipe = Recipe("tiny", "digits", "cnn", timesteps=3, epochs=2, batch_size=32).but(
        train_timesteps=1, graded_epochs=1, small_size=4, small_epochs=1
    )
    step, data = step_of(recipe)
    trainee = step.trainee
    trainee.manner = recipe.manner_in(0)
    seen: list[Any] = []
    neuron = next(iter(trainee.network.somas().values())).neuron
    trainee.network.register_forward_pre_hook(
        lambda module, args: seen.append((args[3], args[0].shape[-1], neuron.graded))
    )
    with torch.no_grad():
        trainee.network.classifier.weight.fill_(torch.inf)
    assert "the logits" in explain_non_finite(step, data.train, len(data.train))
    assert seen == [(1, 4, True)]
