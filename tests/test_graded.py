"""Epochs in which neurons emit grades instead of spikes."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from torch import Tensor, nn

from quadspike import LIF, QIF, Network, QuadspikeError, Soma
from quadspike.cli.display import Display
from quadspike.data.geometry import Geometry
from quadspike.neurons import Ternary
from quadspike.training import Recipe, train
from quadspike.training.network import make_network
from quadspike.training.trainee import Trainee, grading
from tests.watching import Epochs

CPU = torch.device("cpu")


def tiny(**changes: Any) -> Recipe:
    return Recipe(
        "tiny", "digits", "mlp", timesteps=2, epochs=3, batch_size=256, lr=0.05, graded_epochs=2
    ).but(**changes)


@pytest.mark.parametrize("backend", ["reference", "vectorised"])
def test_a_grade_is_the_membrane_by_twice_the_threshold(backend: str) -> None:
    soma = Soma(1, QIF(), norm=None, backend=backend)
    network = Network(nn.Identity(), soma, timesteps=1, input_rank=2)
    x = torch.tensor([[-1.0], [0.0], [0.2], [0.5], [0.9], [1.0], [7.0]])
    with grading(network, True):
        graded = network(x)
    assert graded.flatten().tolist() == pytest.approx([0, 0, 0.2, 0.5, 0.9, 1, 1])
    assert network(x).flatten().tolist() == [0, 0, 0, 1, 1, 1, 1]


@pytest.mark.parametrize("surrogate", ["window", "dspike", "local-zo", "learned-width"])
@pytest.mark.parametrize("neuron", ["qif", "lif"])
def test_the_gradient_of_grades_is_the_true_one(neuron: str, surrogate: str) -> None:
    """Against autograd through the equation, reset included; whatever stands in for spikes."""
    u_th = 0.7
    kind: Any = {"qif": QIF, "lif": LIF}[neuron]
    ours = kind(u_th=u_th, surrogate=surrogate).double()
    ours.graded = True
    torch.manual_seed(0)
    x = torch.randn(4, 50, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(4, 50, dtype=torch.float64)
    (found,) = torch.autograd.grad((ours(x) * weights).sum(), x)

    def true(x: Tensor) -> Tensor:
        u = o = torch.zeros(50, dtype=torch.float64)
        emitted = []
        for current in x:
            leak = 0.25 * u * (u - 0.5) if neuron == "qif" else ours.beta * u
            u = leak * (1 - o) + current
            o = (u / (2 * u_th)).clamp(0, 1)
            emitted.append(o)
        return torch.stack(emitted)

    (wanted,) = torch.autograd.grad((true(x) * weights).sum(), x)
    torch.testing.assert_close(ours(x), true(x))
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("backend", ["reference", "vectorised"])
@pytest.mark.parametrize(("neuron", "learned"), [("qif-learned", "u_th"), ("glif", "u_th_logit")])
def test_a_learned_threshold_has_its_true_gradient(neuron: str, learned: str, backend: str) -> None:
    """By a finite difference: it moves the ramp, and stretches it."""
    torch.manual_seed(0)
    soma = Soma(2, neuron, backend=backend, timesteps=3).double()
    soma.neuron.graded = True
    x, weights = torch.randn(2, 3, 40, 2, dtype=torch.float64)
    threshold = getattr(soma.neuron, learned)

    def loss(moved: float) -> Tensor:
        with torch.no_grad():
            threshold.add_(moved)
        total = (soma(x) * weights).sum()
        with torch.no_grad():
            threshold.sub_(moved)
        return total

    wanted = (loss(1e-6) - loss(-1e-6)) / 2e-6
    (found,) = torch.autograd.grad((soma(x) * weights).sum(), threshold)
    assert found.sum().item() == pytest.approx(wanted.item(), rel=1e-5)


def test_the_first_epochs_are_graded_and_every_evaluation_is_of_spikes(tmp_path: Path) -> None:
    recipe, epochs = tiny(), Epochs()
    network = make_network(recipe, Geometry(1, 8, 10))
    whole: dict[tuple[int, bool], set[bool]] = {}

    def look(module: nn.Module, args: object, out: Tensor) -> None:
        spikes = bool(((out == 0) | (out == 1)).all())
        whole.setdefault((epochs.over, module.training), set()).add(spikes)

    next(iter(network.somas().values())).register_forward_hook(look)
    console = Console(file=StringIO(), width=200)
    watchers = [epochs, Display(console)]
    train(recipe, model=network, out=tmp_path / "run", device="cpu", observers=watchers)
    assert "grades in the first 2 epochs, then spikes" in console.file.getvalue()
    assert {when: seen for when, seen in whole.items() if when[1]} == {
        (0, True): {False},
        (1, True): {False},
        (2, True): {True},
    }
    assert all(seen == {True} for (_, training), seen in whole.items() if not training)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"graded_epochs": 3}, "none of the 3 epochs for spikes"),
        ({"neuron": "ternary"}, "does not fire at one threshold"),
    ],
    ids=["no spikes", "two thresholds"],
)
def test_grades_that_mean_nothing_are_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(QuadspikeError, match=words):
        tiny(**fields)


def test_a_network_of_ones_own_that_cannot_grade_is_refused() -> None:
    network = Network(
        nn.Flatten(), nn.Linear(64, 8), Soma(8, Ternary()), nn.Linear(8, 10), input_rank=4
    )
    with pytest.raises(QuadspikeError, match="one threshold"):
        Trainee(network, tiny(model="own"))


def test_a_threshold_of_zero_grades_nothing() -> None:
    with pytest.raises(QuadspikeError, match="u_th = 0"):
        QIF(u1=-0.5, u2=-0.2, u_th=0.0, surrogate="rectangle").check_grades()
