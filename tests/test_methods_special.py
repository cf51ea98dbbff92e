"""What each method becomes at its ends, in the package itself."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from quadspike import Network, Soma, create_neuron
from quadspike.deploy import fold
from quadspike.norms import NORMS
from tests.equations import norms
from tests.equations.recursion import forward
from tests.method_cases import (
    CASES,
    CHANNELS,
    CLOSE,
    QUARTER_LIF,
    SHAPE,
    STEPS,
    backends,
    drawn,
    layer,
    outcome,
)


def plain(backend, **options):
    return layer(backend, neuron={"name": "lif", "surrogate": "arctan", **options}, norm=None)


@backends
def test_glif_with_its_gates_at_the_ends_is_lif(backend):
    soma = layer(backend, neuron={"name": "glif", "surrogate": "arctan"}, norm=None)
    ends = {"A": 40.0, "B": -40.0, "G": 40.0}
    with torch.no_grad():
        for mine, theirs in CASES["glif"].names.items():
            if theirs in ends:
                getattr(soma.neuron, mine).fill_(ends[theirs])
    x, weights = drawn(20)
    got, expected = outcome(soma, x, weights), outcome(plain(backend), x, weights)
    np.testing.assert_array_equal(got.out, expected.out)
    np.testing.assert_allclose(got.x, expected.x, rtol=1e-6, atol=1e-8)  # .25 is a float32's


@backends
@pytest.mark.parametrize("detach", [False, True])
def test_plif_at_tau_2_is_lif_with_half_the_input(detach, backend):
    spec = {"name": "plif", "surrogate": "arctan", "detach_reset": detach}
    soma = layer(backend, neuron=spec, norm=None)
    x, weights = drawn(21, spread=1.5)
    got = outcome(soma, x, weights)
    expected = outcome(plain(backend, beta=0.5, detach_reset=detach), x / 2, weights)
    np.testing.assert_array_equal(got.out, expected.out)
    np.testing.assert_allclose(got.x, expected.x / 2, **CLOSE)


@backends
@pytest.mark.parametrize("name", ["ternary", "ternary-trained"])
def test_ternary_with_non_negative_input_is_binary(name, backend):
    soma = layer(backend, neuron={"name": name, "detach_reset": True}, norm=None)
    straight = {"name": "rectangle", "half_width": 1.0, "offset": -0.5}
    binary = plain(backend, surrogate=straight, detach_reset=True)
    x, weights = drawn(22)
    got, expected = (outcome(each, np.abs(x), weights) for each in (soma, binary))
    np.testing.assert_array_equal(got.out, expected.out)
    np.testing.assert_allclose(got.x, expected.x, **CLOSE)
    signs = outcome(soma, x, weights).out
    assert set(np.unique(signs)) == {-1.0, 0.0, 1.0}
    np.testing.assert_array_equal(outcome(soma, -x, weights).out, -signs)


def test_a_learned_qif_starts_as_the_paper_s():
    x = torch.randn(5, 3, 4, dtype=torch.float64)
    assert torch.equal(create_neuron("qif-learned").double()(x), create_neuron("qif")(x))


WEIGHT = np.array([0.8, -1.1, 0.0, 0.0, 2.0])
BIAS = np.array([0.1, 0.2, 0.6, 0.4, -0.3])


@torch.no_grad()
def evaluated_mpbn(soma):
    """A soma whose membrane's norm has learned gains of either sign, and the statement of it."""
    rng = np.random.default_rng(23)
    mean, var = rng.normal(0, 0.3, CHANNELS), 0.5 + rng.random(CHANNELS)
    inner = soma.norm.membrane
    inner.weight.copy_(torch.tensor(WEIGHT))
    inner.bias.copy_(torch.tensor(BIAS))
    inner.running_mean.copy_(torch.tensor(mean))
    inner.running_var.copy_(torch.tensor(var))
    soma.eval()
    return norms.RunningNorm(WEIGHT, BIAS, mean, var)


@pytest.mark.parametrize("backend", ["reference", "auto"])
def test_mpbn_at_inference_uses_its_running_statistics(backend):
    soma = Soma(CHANNELS, neuron="lif", norm="mpbn", timesteps=STEPS, backend=backend).double()
    membrane = evaluated_mpbn(soma)
    x = drawn(24)[0]
    expected = forward(QUARTER_LIF, x / np.sqrt(1 + 1e-5), membrane=membrane)
    with torch.no_grad():
        np.testing.assert_array_equal(soma(torch.tensor(x)).numpy(), expected.out)


def test_mpbn_folded_equals_unfolded_for_gains_of_either_sign():
    network = Network(
        nn.Linear(6, CHANNELS),
        Soma(CHANNELS, neuron="lif", norm="mpbn", timesteps=STEPS),
        nn.Linear(CHANNELS, 3),
        timesteps=STEPS,
    ).double()
    evaluated_mpbn(network[1])
    network.eval()
    folded = fold(network)
    assert not any(isinstance(module, tuple(NORMS.values())) for module in folded.modules())
    x = torch.randn(STEPS, 200, 6, dtype=torch.float64) * 2
    (one, seen), (other, also) = network(x, taps="spikes"), folded(x, taps="spikes")
    spikes = next(iter(seen.values()))["spikes"]
    assert torch.equal(spikes, next(iter(also.values()))["spikes"])
    torch.testing.assert_close(one, other)
    rates = spikes.mean((0, 1)).tolist()
    assert rates[2:4] == [1.0, 0.0]
    assert all(0 < rate < 1 for rate in (rates[0], rates[1], rates[4]))


def test_the_shapes_here_tell_channels_from_steps():
    assert len(set(SHAPE[:3])) == 3
