"""Every surrogate against its NumPy statement, through a LIF neuron."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from quadspike import LIF
from quadspike.surrogates import SURROGATES
from tests.equations import surrogates
from tests.equations.recursion import backward, forward
from tests.method_cases import (
    QUARTER_LIF,
    STEPS,
    assert_same,
    backends,
    drawn,
    layer,
    outcome,
)

SLOPES = {
    "rectangle": ({"half_width": 0.3, "height": 2.0, "offset": 0.1}, surrogates.box(-0.2, 0.4, 2)),
    "window": ({"center": "mean"}, surrogates.window(0.0, 0.5 * 1.0625**0.5, 0.5)),
    "triangle": ({"width": 0.8}, surrogates.triangle(0.8)),
    "arctan": ({"alpha": 3.0}, surrogates.arctan(3.0)),
    "sigmoid": ({"alpha": 5.0}, surrogates.sigmoid(5.0)),
    "learned-width": ({}, surrogates.learned_width(0.25, 0.5)),
    "dspike": ({}, surrogates.dspike(3.0, 0.5)),
    "dspike of SML": ({"temperature": 2.5, "half_width": 1.0}, surrogates.dspike(2.5, 1.0)),
}


def test_every_surrogate_has_a_statement():
    assert {name.split()[0] for name in SLOPES} | {"evolving", "local-zo"} == set(SURROGATES)


@backends
@pytest.mark.parametrize("detach", [False, True])
@pytest.mark.parametrize("name", SLOPES)
def test_a_surrogate_is_its_statement(name, detach, backend):
    options, slope = SLOPES[name]
    spec = {
        "name": "lif",
        "surrogate": {"name": name.split()[0], **options},
        "detach_reset": detach,
    }
    soma = layer(backend, neuron=spec, norm=None)
    x, weights = drawn(8)
    expected = backward(QUARTER_LIF, x, weights, slope, detach)
    assert_same(outcome(soma, x, weights), forward(QUARTER_LIF, x), expected)


@backends
@pytest.mark.parametrize("progress", [0.0, 0.4, 1.0])
def test_the_evolving_tanh_follows_the_training(progress, backend):
    soma = layer(backend, neuron={"name": "lif", "surrogate": "evolving"}, norm=None)
    soma.neuron.progress.fill_(progress)
    x, weights = drawn(9)
    expected = backward(QUARTER_LIF, x, weights, surrogates.evolving(progress))
    assert_same(outcome(soma, x, weights), forward(QUARTER_LIF, x), expected)


def test_local_zo_passes_its_draws_back_through_time():
    soma = layer("reference", neuron={"name": "lif", "surrogate": "local-zo"}, norm=None)
    x, weights = drawn(10)
    trace = forward(QUARTER_LIF, x)
    slopes = np.zeros_like(x)
    for t in range(STEPS):  # a loss of step t alone meets that step's slope first
        one = np.zeros_like(x)
        one[t] = 1.0
        slopes[t] = outcome(soma, x, one).x[t]
    # A mean of 5 of which each is 0 or more than |v| / (2 delta^2).
    assert np.all((slopes == 0) | (slopes > np.abs(trace.v) / (2 * 0.25) / 5 - 1e-12))
    assert len(np.unique(slopes[slopes > 0])) == (slopes > 0).sum() > 50
    expected = backward(QUARTER_LIF, x, weights, lambda v: slopes)
    assert_same(outcome(soma, x, weights), trace, expected)


@pytest.mark.parametrize("v", [0.0, 0.3, -0.9])
def test_local_zo_s_mean_is_the_gaussian_surrogate(v):
    count = 100_000
    x = torch.full((1, 1, count), 0.5 + v, dtype=torch.float64, requires_grad=True)
    LIF(surrogate="local-zo")(x).sum().backward()
    slopes = x.grad.numpy()
    variance = surrogates.local_zo_variance(v, 5)
    error = 5 * (variance / count) ** 0.5
    assert slopes.mean() == pytest.approx(surrogates.gaussian()(v), abs=error)
    assert slopes.var() == pytest.approx(variance, rel=0.05)
