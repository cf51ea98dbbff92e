"""One step of training, and its learning rate."""

from __future__ import annotations

import copy
import math
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from quadspike import LIF, create_model
from quadspike.randomness import Key
from quadspike.training.datasets import make_data
from quadspike.training.distributed import Workers
from quadspike.training.network import make_network
from quadspike.training.schedule import learning_rate, make_optimizer, set_learning_rate
from quadspike.training.step import CORRECT, LOSS, SEEN
from quadspike.training.trainee import Trainee
from tests.steps import CPU, step_of, step_with, tiny

# -- the step --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("optimizer", "options"),
    [
        ("sgd", {"momentum": 0.9}),
        ("sgd", {"momentum": 0.9, "nesterov": True}),
        ("sgd", {"momentum": 0.5}),
        ("sgd", {"momentum": 0.0}),
        ("adam", {}),
    ],
)
def test_a_step_is_the_textbook_step(optimizer: str, options: dict[str, Any]) -> None:
    recipe = tiny(optimizer=optimizer, weight_decay=0.01, clip=0.3, **options)
    step, data = step_of(recipe)
    twin = copy.deepcopy(step.network)
    decays = [
        p for n, p in twin.named_parameters() if "synapse.weight" in n or n == "classifier.weight"
    ]
    others = [p for p in twin.parameters() if not any(p is d for d in decays)]
    groups = [{"params": decays, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}]
    plain: torch.optim.Optimizer = (
        torch.optim.SGD(groups, lr=0.05, **options)
        if optimizer == "sgd"
        else torch.optim.Adam(groups, lr=0.05)
    )
    losses = 0.0
    for index, (inputs, labels) in enumerate(data.train.epoch(0)):
        if index == 3:
            break
        set_learning_rate(step.optimizer, 0.05)
        step(inputs, labels)
        plain.zero_grad()
        loss = nn.functional.cross_entropy(twin(inputs).mean(0), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(twin.parameters(), 0.3)
        plain.step()
        losses += float(loss.detach()) * len(labels)
    for (name, ours), theirs in zip(
        step.network.named_parameters(), twin.parameters(), strict=True
    ):
        torch.testing.assert_close(ours, theirs, msg=name, rtol=1e-5, atol=1e-6)
    assert float(step.totals[LOSS]) == pytest.approx(losses, rel=1e-5)
    assert int(step.totals[SEEN]) == 3 * 256
    assert int(step.count) == 3


def test_only_the_weights_of_synapses_decay() -> None:
    model = create_model("cnn", in_channels=1, neuron={"name": "qif"})
    model.conv1.soma.neuron.register_parameter("gain", nn.Parameter(torch.ones(3, 3)))
    optimizer = make_optimizer(tiny(), model)
    weights, others = (group["params"] for group in optimizer.param_groups)
    assert [group["weight_decay"] for group in optimizer.param_groups] == [1e-4, 0.0]
    assert len(weights) == 4  # three convolutions and the classifier
    assert sum(p.numel() for p in weights + others) == sum(p.numel() for p in model.parameters())


def test_all_parameters_decay_where_asked_and_a_learned_qif_learns_slowly() -> None:
    model = create_model("cnn", in_channels=1, neuron="qif-learned")
    optimizer = make_optimizer(tiny(decay_all=True, lr=0.5), model)
    usual, slow = optimizer.param_groups
    assert [group["weight_decay"] for group in (usual, slow)] == [1e-4, 1e-4]
    assert len(slow["params"]) == 12  # a, u1, u2 and u_th of three layers
    assert (usual["lr"], slow["lr"]) == (0.5, pytest.approx(0.005))
    set_learning_rate(optimizer, 0.2)
    assert (usual["lr"], slow["lr"]) == (0.2, pytest.approx(0.002))


def test_parts_of_a_batch_add_up_where_no_statistics_are_shared() -> None:
    """With fixed statistics a batch in four parts has the gradient of the whole."""
    whole, data = step_of(tiny(precision="fp64"))
    parts, _ = step_of(tiny(precision="fp64", accumulate=4))
    inputs, labels = next(iter(data.train.epoch(0)))
    for step in (whole, parts):
        step.network.eval()
        step.gradients(inputs, labels)
    for a, b in zip(whole.parameters, parts.parameters, strict=True):
        torch.testing.assert_close(a.grad, b.grad)
    assert torch.allclose(whole.totals, parts.totals)


def test_dropout_of_the_parts_is_that_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    keys: list[Key] = []
    step, data = step_of(tiny(accumulate=2))
    forward = step.network.forward

    def spy(x: Tensor, **options: Any) -> Any:
        keys.append(options["key"])
        return forward(x, **options)

    monkeypatch.setattr(step.network, "forward", spy)
    inputs, labels = next(iter(data.train.epoch(0)))
    step(inputs, labels)
    assert [key.first for key in keys] == [0, 128]


def test_a_spoilt_step_changes_nothing() -> None:
    step, data = step_of(tiny())
    inputs, labels = next(iter(data.train.epoch(0)))
    step(inputs, labels)
    before = copy.deepcopy(step.network.state_dict())
    moments = copy.deepcopy(step.optimizer.state_dict()["state"])
    step(inputs * math.inf, labels)
    step(inputs, labels)  # the flag stays up
    for name, parameter in step.network.named_parameters():
        assert torch.equal(parameter, before[name]), name
    after = step.optimizer.state_dict()["state"]
    assert all(
        torch.equal(after[i]["momentum_buffer"], moments[i]["momentum_buffer"]) for i in after
    )
    assert step.spoilt.item() == 1
    assert int(step.count) == 1


def test_tet_is_the_loss_when_asked() -> None:
    step, data = step_of(tiny(loss="tet", tet_lambda=0.2, tet_phi=2.0, label_smoothing=0.1))
    inputs, labels = next(iter(data.train.epoch(0)))
    logits = copy.deepcopy(step.network)(inputs)
    expected = (
        0.2 * (logits - 2).square().mean()
        + 0.8
        * torch.stack(
            [nn.functional.cross_entropy(o, labels, label_smoothing=0.1) for o in logits]
        ).mean()
    )
    step.gradients(inputs, labels)
    assert float(step.totals[LOSS]) / 256 == pytest.approx(float(expected.detach()), rel=1e-5)
    right = (logits.mean(0).argmax(1) == labels).sum()
    assert int(step.totals[CORRECT]) == int(right)


class Bounded(LIF):
    """Learns its leak, within [0, 0.5]."""

    def project(self) -> None:
        self.beta.clamp_(0.0, 0.5)


def test_neurons_are_projected_after_an_update() -> None:
    recipe = tiny(lr=1e6, momentum=0.0)
    data = make_data(recipe, None, CPU, Workers())
    neuron = Bounded(beta=nn.Parameter(torch.tensor(0.25)))
    model = create_model("mlp", in_channels=1, neuron=neuron, seed=0)
    step = step_with(Trainee(model, recipe), recipe, len(data.train))
    inputs, labels = next(iter(data.train.epoch(0)))
    step(inputs, labels)
    leaks = [soma.neuron.beta.detach() for soma in model.somas().values()]
    assert {float(beta) for beta in leaks} <= {0.0, 0.5}  # so large a step ends outside


def test_what_evolves_is_told_the_share_of_epochs_done() -> None:
    recipe = tiny(epochs=4)
    data = make_data(recipe, None, CPU, Workers())
    model = make_network(recipe, data.geometry).train()
    neurons = [soma.neuron for soma in model.somas().values()]
    for neuron in neurons:
        neuron.register_buffer("progress", torch.zeros(()), persistent=False)
    step = step_with(Trainee(model, recipe), recipe, 2)
    inputs, labels = next(iter(data.train.epoch(0)))
    told = []
    for _ in range(8):
        step(inputs, labels)
        told.append({float(neuron.progress) for neuron in neurons})
    assert told == [{share} for share in (0, 0, 0.25, 0.25, 0.5, 0.5, 0.75, 0.75)]
    step.count.fill_(5)  # as a resumed run does
    step(inputs, labels)
    assert {float(neuron.progress) for neuron in neurons} == {0.5}


def test_heads_are_told_the_share_too_and_learn() -> None:
    recipe = tiny(model="cnn", aid="shortcuts", epochs=4, batch_size=64)
    step, data = step_of(recipe)
    inputs, labels = next(iter(data.train.epoch(0)))
    heads = step.trainee.heads
    assert heads is not None
    before = copy.deepcopy(heads.state_dict())
    losses = []
    for epoch in (0, 3):
        twin, _ = step_of(recipe)
        twin.count.fill_(epoch * len(data.train))
        twin.gradients(inputs, labels)
        losses.append(float(twin.totals[LOSS]))
    step(inputs, labels)
    assert losses[1] < 0.6 * losses[0]  # both heads count a quarter, where they counted whole
    assert all(not torch.equal(before[name], t) for name, t in heads.state_dict().items())


# -- the learning rate -----------------------------------------------------------------------


def test_the_learning_rate_warms_up_and_falls_to_zero() -> None:
    recipe = tiny(epochs=10, lr=0.2, warmup_epochs=2)
    rates = [learning_rate(recipe, step, 5) for step in range(50)]
    assert rates[:10] == pytest.approx([0.02 * n for n in range(1, 11)])
    assert rates[10] == 0.2
    assert all(a > b for a, b in pairwise(rates[10:]))
    assert learning_rate(recipe, 50, 5) == pytest.approx(0, abs=1e-12)
