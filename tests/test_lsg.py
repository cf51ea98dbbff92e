from __future__ import annotations

import math

import pytest
import torch

from quadspike.neurons import LIF, LSG


def test_it_starts_at_a_decay_of_a_fifth():
    neuron = LSG()
    assert neuron.b.item() == pytest.approx(math.log(0.25))
    assert neuron.beta.item() == pytest.approx(0.2)


def test_it_is_a_lif_whose_window_follows_its_decay():
    neuron, x = LSG(), torch.randn(5, 200)
    lif = LIF(beta=0.2, surrogate=neuron.surrogate)
    assert torch.equal(neuron(x), lif(x))
    widths = []
    for b in (-2.0, 0.0, 2.0):
        torch.nn.init.constant_(neuron.b, b)
        low, high = neuron.surrogate.window(neuron)
        widths.append(float(high - low))
        beta = 1 / (1 + math.exp(-b))
        assert widths[-1] == pytest.approx(2 * 0.5 * math.sqrt(1 + beta**2))
        assert not high.requires_grad
    assert widths == sorted(widths)


def test_the_decay_learns_through_the_membrane():
    neuron = LSG()
    neuron(torch.randn(5, 200)).sum().backward()
    assert neuron.b.grad.isfinite()
    assert neuron.b.grad != 0
