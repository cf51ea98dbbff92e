from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from quadspike import LIF, QIF, QuadspikeError, voltage_statistics
from quadspike.surrogates import (
    SURROGATES,
    ArcTan,
    Dspike,
    Evolving,
    LocalZO,
    Rectangle,
    Sigmoid,
    Surrogate,
    Triangle,
    Window,
    create_surrogate,
)


def slope(surrogate, v, neuron=None):
    neuron = neuron or QIF(surrogate=surrogate)
    return surrogate.derivative(
        torch.as_tensor(v, dtype=torch.float64), surrogate.constants(neuron)
    )


def test_theorem_1_is_the_exact_second_step_without_reset():
    """Under its two-step truncation the theorem is exact: compare with a simulation."""
    rng = np.random.default_rng(0)
    a, u1, u2, u_th = 0.3, 0.2, -0.4, 0.6
    one, two = rng.normal(0, u_th, (2, 4_000_000))
    u = a * (one - u1) * (one - u2) + two
    mean, std = voltage_statistics(a, u1, u2, u_th)
    assert u.mean() == pytest.approx(mean, abs=2e-3)
    assert u.std() == pytest.approx(std, rel=2e-3)


@pytest.mark.parametrize(
    ("center", "low", "high"),
    [("mean", -0.4491, 0.5741), ("threshold", -0.0116, 1.0116), (0.3, -0.2116, 0.8116)],
)
def test_the_paper_s_window_and_its_shifted_twin(center, low, high):
    neuron = QIF(surrogate=Window(center))
    assert neuron.surrogate.window(neuron) == pytest.approx((low, high), abs=5e-5)


def test_the_stationary_window_comes_from_the_exact_density():
    neuron = QIF(surrogate=Window("stationary"))
    density = neuron.density()
    expected = (density.mean - density.std, density.mean + density.std)
    assert neuron.surrogate.window(neuron) == pytest.approx(expected)


def test_windows_are_closed_with_height_one():
    for neuron in (QIF(surrogate=Window("mean")), QIF(), LIF()):
        low, high = neuron.surrogate.reach(neuron)
        outside = 1e-6
        v = [low - outside, low, (low + high) / 2, high, high + outside]
        assert slope(neuron.surrogate, v, neuron).tolist() == [0, 1, 1, 1, 0]


@pytest.mark.parametrize("center", ["mean", "threshold", "stationary"])
def test_a_window_of_another_width_and_of_area_one(center):
    usual, wide = Window(center), Window(center, scale=3.0, height="unit-area")
    low, high = usual.window(QIF())
    left, right = wide.window(QIF())
    assert left + right == pytest.approx(low + high)
    assert right - left == pytest.approx(3 * (high - low))
    assert wide.constants(QIF()).height * (right - left) == pytest.approx(1.0)
    assert usual.constants(QIF()).height == 1.0


@pytest.mark.parametrize(
    "surrogate",
    [Triangle(0.7), ArcTan(3.0), Sigmoid(5.0), Dspike(3.0), Evolving(2.0, 4.0)],
)
def test_reach_is_where_the_slope_halves(surrogate):
    low, high = surrogate.reach(QIF(surrogate=surrogate))
    peak = slope(surrogate, 0.0)
    for edge in (low, high):
        assert slope(surrogate, edge).item() == pytest.approx(peak.item() / 2, rel=1e-8)
    assert Dspike(0.1, 0.5).reach(QIF()) == (-0.5, 0.5)  # hardly falls before it ends


def test_a_surrogate_that_evolves_may_come_later_and_by_its_name():
    neuron = LIF()
    neuron.surrogate = "evolving"
    x = torch.full((1, 1), 0.6, requires_grad=True)
    slopes = []
    for share in (0.0, 1.0):
        neuron.progress.fill_(share)
        (grad,) = torch.autograd.grad(neuron(x).sum(), x)
        slopes.append(grad.item())
    assert slopes == pytest.approx([0.5 / math.cosh(0.1) ** 2, 5 / math.cosh(1) ** 2], rel=1e-5)
    assert not neuron.state_dict()


def test_lsg_s_window_follows_what_is_learned_and_passes_it_no_gradient():
    beta = nn.Parameter(torch.tensor([0.2, 0.9]))
    neuron = LIF(beta=beta, surrogate="learned-width")
    low, high, height = neuron.surrogate.constants(neuron)
    width = 2 * 0.5 * (1 + beta.detach() ** 2) ** 0.5
    torch.testing.assert_close(high - low, width)
    torch.testing.assert_close(height, 1 / width)
    assert width[0].item() == pytest.approx(1.0198, abs=1e-4)
    assert not height.requires_grad
    low, high = QIF(surrogate="learned-width").surrogate.reach(QIF())
    assert high == pytest.approx(0.5115845, abs=1e-7)
    assert low == -high


def test_a_window_follows_parameters_per_channel():
    a = torch.tensor([0.1, 0.4])
    low, high = QIF(a=a).surrogate.window(QIF(a=a))
    for channel, value in enumerate(a.tolist()):
        one = QIF(a=value)
        expected = one.surrogate.window(one)
        assert (low[channel].item(), high[channel].item()) == pytest.approx(expected, abs=1e-6)


class Steeper(QIF):
    """Another equation than the one its parent's closed form is of."""

    @staticmethod
    def advance(u, o, x, p):
        return 4 * p.a * (u * u - p.u_sum * u + p.u_prod) * (1 - o) + x


def test_a_closed_form_is_not_that_of_an_equation_that_was_replaced():
    with pytest.raises(QuadspikeError, match=r"no closed form .* for Steeper"):
        Steeper()(torch.zeros(2, 3))
    assert Steeper(surrogate="arctan")(torch.ones(2, 3)).any()
    renamed = type("Renamed", (QIF,), {"name": "renamed"})
    assert renamed().voltage_statistics() == QIF().voltage_statistics()


@pytest.mark.parametrize("name", SURROGATES)
def test_config_round_trip(name):
    surrogate = create_surrogate(name)
    assert create_surrogate(surrogate.config()) == surrogate


class Reachless(Surrogate):
    name = "reachless"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: create_surrogate("sigmod"), "did you mean 'sigmoid'"),
        (lambda: create_surrogate({"name": "arctan", "beta": 1}), "arctan"),
        (lambda: Window("middle"), "stationary or a finite number"),
        (lambda: Window(float("inf")), "finite number.* got inf"),
        (lambda: Window(True), "got True"),
        (lambda: Window(height="two"), "unknown window height"),
        (lambda: Window(scale=0.0), "scale > 0"),
        (lambda: Rectangle(half_width=0), "half_width > 0"),
        (lambda: Triangle(-1), "width > 0"),
        (lambda: ArcTan(float("nan")), "alpha > 0"),
        (lambda: Dspike(half_width=0), "half_width > 0"),
        (lambda: Evolving(k_min=-1), "k_min > 0"),
        (lambda: Evolving(k_min=5, k_max=2), "k_min <= k_max"),
        (lambda: LocalZO(delta=0), "delta > 0"),
        (lambda: Surrogate.reach(Reachless(), QIF()), r"'reachless' .* give it reach\(neuron\)"),
        (lambda: QIF(a=torch.tensor([0.1, 0.2])).density(), "one set of parameters"),
    ],
)
def test_bad_surrogates_are_refused(make, message):
    with pytest.raises(QuadspikeError, match=message):
        make()
