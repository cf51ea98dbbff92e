from __future__ import annotations

import numpy as np
import pytest
import torch

from quadspike import LIF, QIF, QuadspikeError
from quadspike.neurons import GLIF, PLIF, MembraneDensity
from quadspike.surrogates import Window


def simulate(neuron, steps=400, population=20_000, seed=0):
    rng = np.random.default_rng(seed)
    p, u, o = neuron.constants(), np.zeros(population), np.zeros(population)
    kept = []
    for step in range(steps):
        u = neuron.advance(u, o, rng.normal(0, p.u_th, population), p)
        o = (u >= p.u_th).astype(float)
        if step >= 20:
            kept.append(u)
    return np.concatenate(kept)


@pytest.mark.parametrize(
    "neuron",
    [
        QIF(),
        QIF(a=0.6, u2=0.3),
        QIF(u1=-0.5, u2=0.2, u_reset=0.1),
        QIF.from_resting(0.25, 0.1, 5.0, u_th=0.6),
        LIF(),
        LIF(beta=0.9),
    ],
    ids=str,
)
def test_the_exact_density_is_what_simulation_converges_to(neuron):
    density, u = neuron.density(), simulate(neuron)
    low, high = neuron.surrogate.window(neuron)
    assert density.mean == pytest.approx(u.mean(), abs=2e-3)
    assert density.std == pytest.approx(u.std(), rel=3e-3)
    assert density.rate == pytest.approx((u >= neuron.u_th).mean(), abs=2e-3)
    inside = ((u >= low) & (u <= high)).mean()
    assert density.share(low, high) == pytest.approx(inside, abs=2e-3)


@pytest.mark.parametrize("neuron", [PLIF.from_tau(3.0), GLIF()], ids=str)
def test_the_exact_density_knows_that_the_input_is_scaled(neuron):
    _, state = neuron.run(neuron.threshold * torch.randn(60, 20_000))
    density = neuron.density()
    assert state.u.mean().item() == pytest.approx(density.mean, abs=0.005)
    assert state.u.std().item() == pytest.approx(density.std, rel=0.02)
    assert state.o.mean().item() == pytest.approx(density.rate, abs=0.005)


def test_the_closed_form_is_what_two_steps_without_reset_spread():
    gated = GLIF()
    gated.fit(2, 2)
    with torch.no_grad():
        for parameter in gated.parameters():
            parameter += torch.randn_like(parameter)
    p = gated.constants()
    steps = [(gated, [p._replace(gain=row) for row in p.gain])]
    steps += [(each, [each.constants()] * 2) for each in map(PLIF.from_tau, (1.5, 2.0, 4.0))]
    for neuron, (first, second) in steps:
        x = neuron.threshold * torch.randn(2, 300_000, 2)
        u = neuron.advance(neuron.advance(0.0, 0.0, x[0], first), 0.0, x[1], second).detach()
        mean, std = map(torch.as_tensor, neuron.voltage_statistics())
        assert not std.requires_grad
        torch.testing.assert_close(u.mean(0), mean.expand(2), atol=0.01, rtol=0)
        torch.testing.assert_close(u.std(0), std.expand(2, 2)[1], atol=0, rtol=0.01)


def test_the_density_integrates_to_one_and_is_unchanged_by_a_step():
    neuron = QIF()
    density = neuron.density()
    u = np.linspace(-8, 8, 20_001)
    assert np.trapezoid(density.pdf(u), u) == pytest.approx(1, abs=1e-9)
    carried = neuron.advance(u, (u >= 0.5).astype(float), 0.0, neuron.constants())
    kernel = np.exp(-0.5 * ((0.3 - carried) / 0.5) ** 2) / (0.5 * np.sqrt(2 * np.pi))
    after = np.trapezoid(kernel * density.pdf(u), u)
    assert after == pytest.approx(float(density.pdf(0.3)), abs=1e-4)


def test_more_nodes_change_nothing():
    neuron = QIF()
    p = neuron.constants()
    coarse = MembraneDensity.stationary(neuron, p, 0.0, 0.5, nodes=120)
    fine = MembraneDensity.stationary(neuron, p, 0.0, 0.5, nodes=500)
    assert coarse.mean == pytest.approx(fine.mean, abs=1e-10)
    assert coarse.rate == pytest.approx(fine.rate, abs=1e-10)


def test_pinned_statistics_at_the_paper_s_parameters():
    density = QIF().density()
    assert (density.mean, density.std) == pytest.approx((0.04675, 0.51008), abs=1e-5)
    assert density.rate == pytest.approx(0.18647, abs=1e-5)
    assert density.share(-0.4491, 0.5741) == pytest.approx(0.6845, abs=1e-4)


def test_a_spike_that_leaves_some_of_the_membrane():
    soft = GLIF.from_values(alpha=1.0, beta=0.0, gamma=0.0, tau=0.9, reset=0.2, leak=0.0)
    density = soft.density(1.0, 0.3)  # it always fires: u = 0.9 u + I - 0.2
    assert density.mean == pytest.approx(8.0, abs=1e-4)
    assert density.std == pytest.approx(0.3 / (1 - 0.81) ** 0.5, abs=1e-4)
    assert density.rate == pytest.approx(1.0)


def test_a_membrane_that_hardly_leaks_is_right_or_refused():
    slow = LIF(beta=0.99)
    u = simulate(slow, steps=3000, population=4000)[-4_000_000:]
    assert slow.density().mean == pytest.approx(u.mean(), rel=0.02)
    for beta in (0.9999, 1.0):
        with pytest.raises(QuadspikeError, match="hardly leaks"):
            LIF(beta=beta).density()


@pytest.mark.parametrize("u_reset", [3.0, 5.0, 20.0])
def test_a_neuron_that_fires_at_every_step_has_shares_between_none_and_all(u_reset):
    density = QIF(u_reset=u_reset).density()
    low, high = Window("mean").window(QIF())
    assert 0 <= density.share(low, high) < 1e-3
    assert 0.999 < density.rate <= 1
    assert density.mass.min() >= 0


def test_input_mean_and_spread_can_be_given():
    quiet = QIF().density(input_mean=-0.2, input_std=0.3)
    assert quiet.rate < QIF().density().rate
    with pytest.raises(QuadspikeError, match="std > 0"):
        QIF().density(input_std=0.0)


def test_parameters_of_a_single_channel_have_a_density():
    gated = GLIF()
    gated.fit(channels=1, timesteps=1)
    assert gated.density().rate == pytest.approx(GLIF().density().rate)
    one = QIF(a=torch.tensor([0.25]), surrogate=Window("stationary"))
    assert one.voltage_statistics(exact=True) == QIF().voltage_statistics(exact=True)
    assert one(torch.randn(2, 3, 1)).shape == (2, 3, 1)
