from __future__ import annotations

import pytest
import torch

from quadspike.neurons import LIF, PLIF
from quadspike.surrogates import ArcTan


def test_it_starts_as_its_authors_say():
    neuron = PLIF()
    assert neuron.w.item() == 0.0
    assert neuron.constants().rate.item() == 0.5
    assert neuron.surrogate == ArcTan(2.0)
    assert neuron.detach_reset
    assert PLIF.from_tau(5.0).tau.item() == pytest.approx(5.0)


@pytest.mark.parametrize("detach", [False, True])
def test_at_tau_2_it_is_a_lif_of_half_the_input(detach):
    x = torch.randn(6, 300, dtype=torch.float64)
    weights, results = torch.randn_like(x), []
    for neuron, scale in ((PLIF(), 1.0), (LIF(beta=0.5, surrogate=ArcTan(2.0)), 0.5)):
        neuron.detach_reset = detach
        given = x.clone().requires_grad_()
        spikes = neuron(scale * given)
        results.append((spikes, *torch.autograd.grad((spikes * weights).sum(), given)))
    assert torch.equal(results[0][0], results[1][0])
    torch.testing.assert_close(results[0][1], results[1][1])


@pytest.mark.parametrize("tau", [1.5, 2.0, 4.0])
def test_the_closed_form_is_what_two_steps_without_reset_spread(tau):
    neuron = PLIF.from_tau(tau)
    x = neuron.threshold * torch.randn(2, 200_000, dtype=torch.float64)
    p = neuron.constants()
    u = neuron.advance(neuron.advance(0.0, 0.0, x[0], p), 0.0, x[1], p).detach()
    mean, std = neuron.voltage_statistics()
    assert mean == 0.0
    assert u.std().item() == pytest.approx(std.item(), rel=0.01)


def test_the_exact_density_knows_that_the_input_is_scaled():
    neuron = PLIF.from_tau(3.0)
    x = neuron.threshold * torch.randn(60, 20_000)
    state = neuron.run(x)[1]
    density = neuron.density()
    assert state.u.mean().item() == pytest.approx(density.mean, abs=0.005)
    assert state.u.std().item() == pytest.approx(density.std, rel=0.02)
    assert state.o.mean().item() == pytest.approx(density.rate, abs=0.005)
