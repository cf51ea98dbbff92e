from __future__ import annotations

import copy
import json
import math

import pytest
import torch
from torch import nn

from quadspike import LIF, QIF, Chain, Network, QuadspikeError, Soma, Timed, create_model
from quadspike.analysis.gradients import examine
from quadspike.analysis.traces import trace
from quadspike.neurons import GLIF, NEURONS, PLIF, TrainedTernary
from quadspike.norms import NORMS
from quadspike.randomness import Key
from quadspike.surrogates import Rectangle, Window


def cross_entropy(x):
    labels = torch.arange(x.shape[-4] if x.ndim == 4 else x.shape[1]) % 10
    return lambda net: nn.functional.cross_entropy(net(x).mean(0), labels)


def small(**options):
    model = create_model("resnet8", seed=1, **options)
    return model, cross_entropy(torch.randn(16, 3, 16, 16))


def test_looking_changes_nothing():
    model, loss = small()
    model.eval()
    before = copy.deepcopy(model.state_dict())
    trace(model, loss)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert not any(p.grad is not None for p in model.parameters())
    assert not model.training
    assert {soma.backend for soma in model.somas().values()} == {"auto"}
    assert not any("excess" in vars(soma.neuron) for soma in model.somas().values())


def test_a_soma_that_did_not_run_is_left_out():
    class Half(Timed):
        def __init__(self):
            super().__init__()
            self.used, self.unused = (Chain(nn.Linear(6, 6), Soma(6)) for _ in range(2))

        def forward(self, x, call):
            return self.used(x, call)

    net, x = Network(nn.Linear(6, 6), Soma(6), Half(), nn.Linear(6, 2)), torch.randn(8, 6)
    found = examine(net, lambda net: net(x).square().mean())
    assert [layer["layer"] for layer in found["layers"]] == ["1", "2.used.1"]
    with pytest.raises(QuadspikeError, match="the loss must call the network it is given"):
        examine(net, lambda _: net(x).square().mean())
    assert net[0].weight.grad is None


def test_a_surrogate_that_draws_is_looked_at_without_torch_s_random_numbers():
    model, x = (
        create_model("cnn", neuron=LIF(surrogate="local-zo"), seed=1),
        torch.randn(8, 3, 8, 8),
    )
    before = torch.get_rng_state()
    one, two = (examine(model, lambda net: net(x, key=Key(0, 0)).sum()) for _ in range(2))
    assert one == two
    assert torch.equal(torch.get_rng_state(), before)


def test_the_gradients_are_those_of_training():
    model, loss = small(residual="sum-then-fire")
    found = {layer["layer"]: layer["gradient"] for layer in examine(model, loss)["layers"]}
    loss(model.train()).backward()
    for name in model.somas():
        grad = model.get_submodule(name.replace(".soma", ".synapse")).weight.grad
        expected = grad.square().mean().sqrt().item()
        assert found[name]["weights"] == pytest.approx(expected, rel=1e-3), name


def test_a_lone_soma_by_hand():
    """dL/do = c / B for every spike, so dL/du is c / B inside the window and 0 outside."""
    torch.manual_seed(0)
    net = Network(nn.Linear(5, 40), Soma(40, QIF(), norm=None), timesteps=1)
    x = torch.randn(30, 5)
    layer = examine(net, lambda net: 3 * net(x).sum() / 30)["layers"][0]
    assert layer["gradient"]["output"] == pytest.approx(3.0)
    assert 0.1 < layer["inside_window"] < 0.9
    assert layer["gradient"]["membrane"] == pytest.approx(3 * math.sqrt(layer["inside_window"]))
    assert layer["factor"] == {"measured": None, "predicted": None}  # of an image's pixels


@pytest.mark.parametrize(("center", "height"), [("mean", 1.0), ("threshold", 1.0), ("mean", 0.7)])
def test_a_layer_multiplies_the_squared_gradient_as_predicted(center, height):
    """1.87 times the share inside the window, at a firing rate of 0.159, for a height of 1."""
    low, high = Window(center).window(QIF())
    box = Rectangle((high - low) / 2, height, (low + high) / 2 - 0.5)
    parts = [
        part
        for _ in range(3)
        for part in (nn.Linear(400, 400, False), Soma(400, QIF(surrogate=box)))
    ]
    net = Network(*parts, timesteps=1)
    x, direction = torch.randn(300, 400), torch.randn(1, 300, 400)
    layers = examine(net, lambda net: (direction * net(x)).mean())["layers"]
    assert layers[0]["factor"]["measured"] is None
    for layer in layers[1:]:
        factor = layer["factor"]
        assert layer["rate"] == pytest.approx(0.159, abs=0.01)
        share = factor["predicted"] / (height**2 * layer["inside_window"])
        assert share == pytest.approx(1.87, abs=0.06)
        assert factor["measured"] == pytest.approx(factor["predicted"], rel=0.1)


@pytest.mark.parametrize("neuron", [PLIF(), GLIF(), TrainedTernary(alpha=0.5)], ids=str)
def test_what_a_membrane_takes_and_a_spike_is_worth_are_predicted_too(neuron):
    parts = [part for _ in range(2) for part in (nn.Linear(400, 400, False), Soma(400, neuron))]
    net = Network(*parts, timesteps=1)
    x, direction = torch.randn(300, 400), torch.randn(1, 300, 400)
    factor = examine(net, lambda net: (direction * net(x)).mean())["layers"][1]["factor"]
    assert factor["measured"] == pytest.approx(factor["predicted"], rel=0.1)


@pytest.mark.parametrize("timesteps", [1, 4])
def test_what_comes_back_through_time_is_not_predicted(timesteps):
    """A neuron that remembers multiplies by more, as its page says."""
    neuron = LIF(beta=0.9)
    parts = [part for _ in range(2) for part in (nn.Linear(400, 400, False), Soma(400, neuron))]
    net = Network(*parts, timesteps=timesteps)
    x, direction = torch.randn(300, 400), torch.randn(1, 300, 400)
    found = examine(net, lambda net: (direction * net(x)).mean())
    factor = found["layers"][1]["factor"]
    more = factor["measured"] / factor["predicted"]
    assert more > 1.4 if timesteps > 1 else more == pytest.approx(1, abs=0.1)


def test_the_two_paths_of_a_block_add_up():
    model, loss = small()
    seen = trace(model, loss)
    block = seen.blocks["layer1.0"]
    total = block.shortcut.grad + block.convolutions.grad
    torch.testing.assert_close(total, seen.somas["stem.soma"].output.grad)
    assert list(seen.blocks) == ["layer1.0", "layer2.0", "layer3.0"]


def test_an_identity_s_spike_lifts_the_membrane_out_of_the_literal_window():
    for center, closed in (("mean", True), ("threshold", False)):
        neuron = {"name": "qif", "surrogate": {"name": "window", "center": center}}
        model, loss = small(residual="sum-then-fire", neuron=neuron)
        window = examine(model, loss)["layers"][2]["window_by_shortcut"]
        assert (window["fired"] < 0.3 * window["silent"]) == closed


def test_a_normalised_shortcut_has_no_spikes_to_tell_apart():
    model, loss = small(residual="sum-then-fire", identity_norm=True)
    assert examine(model, loss)["layers"][2]["window_by_shortcut"] is None


@pytest.mark.parametrize(
    ("neuron", "norm"),
    [(name, "tdbn") for name in NEURONS] + [("qif", name) for name in NORMS] + [("lif", None)],
)
def test_every_neuron_and_norm_is_described_in_plain_numbers(neuron, norm):
    model = create_model("cnn", neuron=neuron, norm=norm, in_channels=2, timesteps=3, seed=0)
    clip = torch.randn(3, 6, 2, 8, 8)
    found = examine(model, cross_entropy(clip))
    assert [layer["layer"] for layer in found["layers"]] == list(model.somas())
    text = json.dumps(found, allow_nan=False)
    assert json.loads(text) == found
    for layer in found["layers"]:
        assert len(layer["rate_by_step"]) == 3
        assert layer["gradient"]["membrane"] is not None
    # im-lif mixes steps, and mpbn divides the membrane's spread out once more.
    unknown = norm in (None, "mpbn") or neuron == "im-lif"
    assert (found["growth"]["predicted"] is None) == unknown


def test_ratios_from_layer_to_layer():
    model, loss = small()
    layers = examine(model, loss)["layers"]
    one, two = (layer["gradient"]["output"] for layer in layers[:2])
    assert layers[0]["gradient"]["to_next"] == pytest.approx(one / two)
    assert layers[-1]["gradient"]["to_next"] is None


@pytest.mark.gpu
def test_a_gpu_finds_the_same():
    model, x = create_model("resnet8", seed=1), torch.randn(16, 3, 16, 16)
    labels = torch.arange(16) % 10

    def look(net, device):
        x_, labels_ = x.to(device), labels.to(device)
        return examine(
            net.to(device), lambda net: nn.functional.cross_entropy(net(x_).mean(0), labels_)
        )

    here, there = look(model, "cpu"), look(model, "cuda")
    for one, two in zip(here["layers"], there["layers"], strict=True):
        assert two["rate"] == pytest.approx(one["rate"], abs=0.02)
        assert two["gradient"]["output"] == pytest.approx(one["gradient"]["output"], rel=0.1)
