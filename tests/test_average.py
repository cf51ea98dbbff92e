"""The average of the weights that a run evaluates and keeps."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from quadspike import LIF, create_model
from quadspike.models.files import read_tensors
from quadspike.training import Recipe, evaluate, train
from quadspike.training.average import Average
from quadspike.training.checkpoint import load_checkpoint
from quadspike.training.datasets import make_data
from quadspike.training.distributed import Workers
from quadspike.training.graph import CapturedStep
from quadspike.training.memory import need
from quadspike.training.network import copy_weights, make_network
from quadspike.training.step import Step
from tests import steps
from tests.steps import CPU


def tiny(**changes: Any) -> Recipe:
    return steps.tiny(**{"ema": 0.3, **changes})


def step_of(recipe: Recipe) -> tuple[Step, list[Any]]:
    step, data = steps.step_of(recipe)
    return step, list(data.train.epoch(0))


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("fields", [{}, {"model": "cnn", "aid": "sml"}, {"precision": "fp64"}])
def test_it_is_the_formula(fields: dict[str, Any]) -> None:
    """Decays of 1/10, 2/11, 3/12, and from the fourth step on 0.3, below 4/13."""
    step, batches = step_of(tiny(**fields))
    expected = {name: t.double() for name, t in copy_weights(step.network).items()}
    for number, decay in enumerate([1 / 10, 2 / 11, 3 / 12, 0.3, 0.3]):
        step(*batches[number])
        for name, tensor in step.network.state_dict().items():
            expected[name] = decay * expected[name] + (1 - decay) * tensor.double()
    found = step.judged.state_dict()
    assert found.keys() == expected.keys() == step.network.state_dict().keys()
    for name, tensor in expected.items():
        torch.testing.assert_close(found[name].double(), tensor, rtol=1e-5, atol=1e-6, msg=name)
    assert not same(found, step.network.state_dict())


def test_without_a_decay_there_is_none() -> None:
    step, batches = step_of(tiny(ema=0.0))
    assert step.average is None
    assert step.judged is step.network
    averaging, _ = step_of(tiny())
    for batch in batches:
        step(*batch)
        averaging(*batch)
    assert same(step.network.state_dict(), averaging.network.state_dict())


def test_a_spoilt_step_leaves_it_alone() -> None:
    step, batches = step_of(tiny())
    inputs, labels = batches[0]
    step(inputs, labels)
    before = {name: p.clone() for name, p in step.judged.named_parameters()}
    step(inputs * math.inf, labels)
    step(inputs, labels)
    assert all(torch.equal(p, before[name]) for name, p in step.judged.named_parameters())


def test_only_averages_take_memory_and_what_evolves_is_one() -> None:
    model = create_model("mlp", in_channels=1, neuron={"name": "lif", "surrogate": "evolving"})
    twin = Average(model, 0.9).network
    places = {t.data_ptr() for t in model.state_dict().values()}
    assert not places & {t.data_ptr() for t in twin.state_dict().values()}
    kept = model.state_dict().keys()
    others = [(n, b) for n, b in model.named_buffers() if n not in kept]
    assert others
    assert all(dict(twin.named_buffers())[name] is buffer for name, buffer in others)
    assert not any(p.requires_grad for p in twin.parameters())
    assert all(p.requires_grad for p in model.parameters())


def test_weights_that_are_one_stay_one() -> None:
    model = create_model("mlp", in_channels=1, neuron="qif")
    leak = nn.Parameter(torch.tensor(0.2))
    first, second = (soma.neuron for soma in model.somas().values())
    first.register_parameter("leak", leak)
    second.register_parameter("leak", leak)
    average = Average(model, 0.5)
    with torch.no_grad():
        leak.add_(1.0)
    average.follow(torch.tensor(100), torch.zeros(()))
    ones = [soma.neuron.leak for soma in average.network.somas().values()]
    assert ones[0] is ones[1]
    assert ones[0].item() == pytest.approx(0.7)


class Whole(LIF):
    """Its leak is 0 or 1: what lies between is not allowed."""

    def project(self) -> None:
        self.beta.round_()


def test_it_is_what_its_neurons_allow() -> None:
    model = create_model("mlp", in_channels=1, neuron=Whole(beta=nn.Parameter(torch.tensor(0.0))))
    average = Average(model, 0.3)
    with torch.no_grad():
        for soma in model.somas().values():
            soma.neuron.beta.fill_(1.0)
    average.follow(torch.tensor(100), torch.zeros(()))
    assert {soma.neuron.beta.item() for soma in average.network.somas().values()} == {1.0}


def test_a_captured_step_follows_the_eager_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Warm-ups leave no trace in the average; a stand-in captures."""
    Work = Callable[[], None]

    def warm_up(work: Work, times: int = 3) -> None:
        for _ in range(times):
            work()

    monkeypatch.setattr("quadspike.training.graph.warm_up", warm_up)
    monkeypatch.setattr("quadspike.training.graph.capture", lambda work, pool: work)
    (eager, batches), (inner, _) = step_of(tiny()), step_of(tiny())
    captured = CapturedStep(inner)
    for batch in batches:
        eager(*batch)
        captured(*batch)
    assert same(eager.judged.state_dict(), inner.judged.state_dict())
    assert same(eager.network.state_dict(), inner.network.state_dict())


def test_it_needs_memory() -> None:
    data = make_data(tiny(), None, CPU, Workers())
    sizes = []
    for recipe in (tiny(), tiny(ema=0.0)):
        model = make_network(recipe, data.geometry)
        sizes.append(need(model, recipe, data.geometry, CPU).fixed)
    step, _ = step_of(tiny())
    assert sizes[0] - sizes[1] == 4 * sum(p.numel() for p in step.judged.parameters())


# -- a run ---------------------------------------------------------------------------------


def test_it_is_what_a_run_evaluates_and_keeps(tmp_path: Path) -> None:
    recipe = tiny(ema=0.9, epochs=3, validation=100)
    train(recipe, out=tmp_path / "run", device="cpu")
    train(recipe.but(ema=0.0), out=tmp_path / "plain", device="cpu")
    saved = load_checkpoint(tmp_path / "run/checkpoint.safetensors")
    plain = load_checkpoint(tmp_path / "plain/checkpoint.safetensors")
    assert same(saved.part("model"), plain.part("model"))  # training is the same
    assert not plain.part("average")
    last = read_tensors(tmp_path / "run/last.safetensors")
    assert same(last, saved.part("average"))
    assert not same(last, saved.part("model"))
    for weights in ("last", "best"):
        found = evaluate(tmp_path / "run", weights=weights, device="cpu")
        assert found.fresh.accuracy == found.recorded
    ours, theirs = (run.progress.history[-1] for run in (saved, plain))
    assert ours["train_loss"] == theirs["train_loss"]
    assert ours["test_loss"] != theirs["test_loss"]


def test_it_starts_from_the_weights_given(tmp_path: Path) -> None:
    train(tiny(epochs=1), out=tmp_path / "first", device="cpu")
    recipe = tiny(ema=0.999, lr=1e-9, epochs=1)
    train(recipe, out=tmp_path / "then", init_from=tmp_path / "first", device="cpu")
    first, then = (read_tensors(tmp_path / n / "last.safetensors") for n in ("first", "then"))
    torch.testing.assert_close(then["classifier.weight"], first["classifier.weight"])
