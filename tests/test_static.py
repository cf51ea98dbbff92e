"""On a static image QIF's steps repeat each other: see docs/study.md."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from quadspike import LIF, QIF, QuadspikeError, create_model
from quadspike.data.split import Split
from quadspike.recipes import create_recipe
from quadspike.training import Recipe, evaluate, train
from tests.conftest import calibrate

REBOUND = -4.0
"""The constant current at and below which the paper's QIF fires although it did not at first."""


@given(st.floats(REBOUND, 50, exclude_min=True, allow_subnormal=False))
def test_a_constant_current_gives_the_same_spike_at_every_step(current):
    spikes = QIF()(torch.full((8, 1), current, dtype=torch.float64))
    assert torch.equal(spikes, (torch.full((8, 1), current, dtype=torch.float64) >= 0.5).double())


def test_strong_inhibition_rebounds_on_every_second_step():
    assert QIF()(torch.full((4, 1), REBOUND)).flatten().tolist() == [0, 1, 0, 1]


def test_a_leaky_neuron_adds_up():
    assert LIF(beta=0.25)(torch.full((2, 1), 0.45)).flatten().tolist() == [0, 1]


@pytest.mark.parametrize(("neuron", "repeats"), [("qif", True), ("lif", False)])
def test_a_network_of_qif_answers_a_static_image_alike_at_every_step(neuron, repeats):
    model = create_model("resnet8", neuron=neuron, timesteps=4, seed=0)
    x = torch.randn(4, 3, 32, 32)
    calibrate(model, x)
    with torch.no_grad():
        first, *later = model.eval()(x)
    assert all(torch.allclose(step, first, atol=1e-5) for step in later) is repeats


@pytest.mark.parametrize(("neuron", "repeats"), [("qif", True), ("lif", False)])
def test_a_trained_qif_answers_static_images_in_one_step_as_in_all(tmp_path, neuron, repeats):
    recipe = create_recipe("digits-mlp", epochs=1, timesteps=3, neuron=neuron)
    train(recipe, out=tmp_path / "run", device="cpu")
    usual, short = (evaluate(tmp_path / "run", device="cpu", timesteps=t) for t in (None, 1))
    assert usual.fresh.accuracy == usual.recorded > 0.2
    assert short.recorded is None
    assert (short.fresh.loss == pytest.approx(usual.fresh.loss, rel=1e-5)) is repeats


def test_steps_of_recordings_are_not_for_choice(tmp_path):
    clips = torch.randint(3, (16, 2, 2, 8, 8), dtype=torch.uint8)
    split = Split("clips", clips, torch.arange(16) % 10, tuple("0123456789"), levels=1)
    recipe = Recipe("clips", "digits-events", "mlp", timesteps=2, epochs=1, batch_size=8)
    train(recipe, data=(split, split), out=tmp_path / "run", device="cpu")
    with pytest.raises(QuadspikeError, match=r"timesteps=1 is for static images.* 2 frames"):
        evaluate(tmp_path / "run", data=(split, split), device="cpu", timesteps=1)
