from __future__ import annotations

import pytest
import torch

from quadspike import QuadspikeError, Soma
from quadspike.neurons import GLIF, LIF
from quadspike.surrogates import Rectangle

START = {"alpha": 0.55, "beta": 0.65, "gamma": 0.55, "tau": 0.25, "u_th": 0.5,
         "leak": 0.0625, "reset": 0.5, "conductance": 0.5}  # fmt: skip


def test_it_starts_as_its_authors_say():
    neuron = GLIF()
    for name, value in START.items():
        assert getattr(neuron, f"{name}_logit").sigmoid().item() == pytest.approx(value), name
    assert neuron.alpha_logit.item() == pytest.approx(0.2007, abs=1e-4)
    assert neuron.beta_logit.item() == pytest.approx(0.6190, abs=1e-4)
    assert neuron.surrogate == Rectangle(0.5)


@pytest.mark.parametrize("backend", ["reference", "vectorised"])
def test_with_its_gates_at_the_ends_it_is_a_lif(backend):
    x = torch.randn(6 * 4, 3, 5, 5, dtype=torch.float64)
    ends = {"alpha": 1.0, "beta": 0.0, "gamma": 1.0}
    weights, results = torch.randn_like(x), []
    for neuron in (GLIF.from_values(**ends, tau=0.25, u_th=0.5), LIF(beta=0.25, u_th=0.5)):
        soma = Soma(3, neuron, norm=None, backend=backend, timesteps=6)
        given = x.clone().requires_grad_()
        spikes = soma(given.view(6, 4, 3, 5, 5)).view_as(x)
        results.append((spikes, *torch.autograd.grad((spikes * weights).sum(), given)))
    assert torch.equal(results[0][0], results[1][0])
    assert 0.05 < results[0][0].mean() < 0.95
    torch.testing.assert_close(results[0][1], results[1][1], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(("timesteps", "shape"), [(None, (3,)), (4, (4, 3))])
def test_fit_gives_every_channel_its_own_and_every_step_its_conductance(timesteps, shape):
    soma = Soma(3, "glif", timesteps=timesteps)
    shapes = {name: tuple(p.shape) for name, p in soma.neuron.named_parameters()}
    assert shapes.pop("conductance_logit") == shape
    assert set(shapes.values()) == {(3,)}
    soma(torch.randn(4, 2, 3, 4, 4)).sum().backward()
    for name, parameter in soma.neuron.named_parameters():
        assert parameter.grad.shape == parameter.shape
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.any(), name
    if timesteps:
        with pytest.raises(QuadspikeError, match="parameters for 4 steps"):
            soma(torch.randn(5, 2, 3, 4, 4))


def test_a_fitted_neuron_says_its_shapes_and_not_its_numbers():
    assert "[64] in 0.2" in repr(Soma(64, "glif"))


def test_the_closed_form_is_what_two_steps_without_reset_spread():
    neuron = GLIF()
    neuron.fit(2, 2)
    with torch.no_grad():
        for parameter in neuron.parameters():
            parameter += torch.randn_like(parameter)
    x = neuron.threshold * torch.randn(2, 300_000, 2)
    first, second = (neuron.constants()._replace(gain=row) for row in neuron.constants().gain)
    u = neuron.advance(0.0, 0.0, x[0], first)
    u = neuron.advance(u, 0.0, x[1], second).detach()
    mean, std = neuron.voltage_statistics()
    assert not std.requires_grad
    torch.testing.assert_close(u.mean(0), mean, atol=0.01, rtol=0)
    torch.testing.assert_close(u.std(0), std[1], atol=0, rtol=0.01)


def test_a_single_channel_has_an_exact_density():
    neuron = GLIF()
    state = neuron.run(neuron.threshold * torch.randn(60, 20_000))[1]
    density = neuron.density()
    assert state.u.mean().item() == pytest.approx(density.mean, abs=0.005)
    assert state.u.std().item() == pytest.approx(density.std, rel=0.02)
