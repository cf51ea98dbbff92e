"""Every neuron inside a network: it learns, does not decay, is saved, streamed and explained."""

from __future__ import annotations

import pytest
import torch

from quadspike.deploy import stream
from quadspike.models import create_model, load_model, save_model
from quadspike.training.recipe import Recipe
from quadspike.training.schedule import make_optimizer
from tests.conftest import calibrate
from tests.kernel_cases import STREAMED

RECIPE = Recipe("mine", dataset="digits", model="cnn", epochs=1, lr=0.1, weight_decay=0.5)


@pytest.fixture(params=STREAMED)
def model(request):
    return create_model("cnn", neuron=request.param, in_channels=1, timesteps=3, seed=1)


def neuron_parameters(model):
    return [p for soma in model.somas().values() for p in soma.neuron.parameters()]


def test_every_parameter_learns_and_only_synapses_decay(model):
    optimizer = make_optimizer(RECIPE, model)
    decaying = {p for g in optimizer.param_groups if g["weight_decay"] for p in g["params"]}
    own = neuron_parameters(model)
    assert not decaying.intersection(own)
    before = [p.detach().clone() for p in own]
    model(torch.randn(8, 1, 8, 8)).square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    optimizer.step()
    assert all((p != old).any() for p, old in zip(own, before, strict=True))


def test_a_saved_network_gives_the_same_logits_and_streams_them(model, tmp_path):
    x = torch.randn(6, 1, 8, 8)
    with torch.no_grad():
        for parameter in neuron_parameters(model):
            parameter += 0.02 * torch.rand_like(parameter)
    calibrate(model, x)
    again = load_model(save_model(model, tmp_path / "m.safetensors")).eval()
    live = stream(again)
    with torch.no_grad():
        logits = again(x)
        assert torch.equal(logits, model(x))
        torch.testing.assert_close(torch.stack([live(x) for _ in range(3)]), logits)


def test_it_rides_the_fused_template(model):
    for soma in model.somas().values():
        assert soma.explain("cpu").backend == "vectorised"
        assert soma.explain("cuda").backend == "triton"
