from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from quadspike import LIF, QIF
from quadspike.analysis.bias import surrogate_bias
from quadspike.neurons import LearnedQIF
from quadspike.surrogates import (
    ArcTan,
    Dspike,
    Evolving,
    LocalZO,
    Rectangle,
    Sigmoid,
    Triangle,
    Window,
)

PEAK = 1 / math.sqrt(2 * math.pi)


def normal(z: float) -> float:
    return PEAK * math.exp(-z * z / 2)


def below(z: float) -> float:
    return (1 + math.erf(z / math.sqrt(2))) / 2


MEMORYLESS = LIF(beta=0.0, u_th=0.5)  # u is the input, N(0, 1/4), and z = 2 u


def test_a_gaussian_membrane_has_known_answers():
    """True slopes phi(1)/s and 1 phi(1)/s; a box's are differences of the normal and its slope."""
    literal = surrogate_bias(MEMORYLESS, Window("mean"))
    for bias in (literal, surrogate_bias(MEMORYLESS, Window("threshold"))):
        assert bias.shift.true == pytest.approx(2 * normal(1))
        assert bias.stretch.true == pytest.approx(2 * normal(1))
    assert literal.shift.surrogate == pytest.approx(below(1) - below(-1))
    assert literal.stretch.surrogate == pytest.approx(0.0, abs=1e-9)
    assert literal.firing == pytest.approx(0.0, abs=1e-9)
    shifted = surrogate_bias(MEMORYLESS, Window("threshold"))
    assert shifted.shift.surrogate == pytest.approx(below(2) - below(0))
    assert shifted.stretch.surrogate == pytest.approx(normal(0) - normal(2))
    assert shifted.firing == pytest.approx((below(2) - below(1)) / (below(2) - below(0)))


def test_a_narrow_window_of_area_one_has_no_bias():
    narrow = Rectangle(half_width=1e-3, height=500.0)
    for neuron in (MEMORYLESS, QIF(), LIF()):
        bias = surrogate_bias(neuron, narrow)
        assert bias.shift.ratio == pytest.approx(1.0, abs=1e-5)
        assert bias.stretch.ratio == pytest.approx(1.0, abs=1e-5)
        assert bias.firing == pytest.approx(0.5, abs=1e-3)


def test_the_true_slope_is_that_of_the_exact_firing_rate():
    """By a finite difference: the rate if every membrane met a threshold a little lower."""
    for neuron in (QIF(), LIF()):
        density, step = neuron.density(), 1e-4
        rates = [1 - density.below(0.5 + sign * step) for sign in (-1, 1)]
        slope = (rates[0] - rates[1]) / (2 * step)
        assert surrogate_bias(neuron, density=density).shift.true == pytest.approx(slope, rel=1e-6)


def test_the_share_inside_a_window_of_height_one_is_its_mean_slope():
    for center in ("mean", "threshold", "stationary"):
        window = Window(center)
        expected = QIF().density().share(*window.window(QIF()))
        assert surrogate_bias(QIF(), window).shift.surrogate == pytest.approx(expected, rel=1e-9)


def test_a_surrogate_may_be_named():
    assert surrogate_bias(QIF(), "arctan") == surrogate_bias(QIF(), ArcTan())


def test_a_neuron_that_learns_its_numbers_has_the_same_bias():
    assert surrogate_bias(LearnedQIF()).shift.ratio == pytest.approx(
        surrogate_bias(QIF()).shift.ratio, rel=1e-6
    )


def test_a_smooth_surrogate_is_integrated_too():
    steep = surrogate_bias(QIF(), ArcTan(alpha=50.0))
    assert steep.shift.ratio == pytest.approx(1.0, abs=0.05)


def test_a_surrogate_that_evolves_is_taken_as_it_is_when_training_begins():
    """At K = 1 its slope `K (1 - tanh(K v)^2) / 2` is that of a sigmoid of 2 v."""
    evolving, neuron = Evolving(), QIF()
    found, plain = (surrogate_bias(neuron, each) for each in (evolving, Sigmoid(2.0)))
    assert found.shift.surrogate == pytest.approx(plain.shift.surrogate)
    assert neuron.surrogate != evolving
    trained = QIF(surrogate=evolving)
    trained.progress.fill_(1.0)  # but as its own neuron has it
    steep = surrogate_bias(neuron, Sigmoid(20.0)).shift.surrogate
    assert surrogate_bias(trained).shift.surrogate == pytest.approx(steep)


@pytest.mark.parametrize(
    ("window", "shift", "stretch", "firing"),
    [
        (Window("mean"), 1.31, 0.03, 0.05),
        (Window("stationary"), 1.31, 0.00, 0.04),
        (Window("threshold"), 0.98, 0.70, 0.30),
        (Window("threshold", 0.5, "unit-area"), 0.99, 0.91, 0.39),
    ],
)
def test_the_numbers_in_the_docs(window, shift, stretch, firing):
    bias = surrogate_bias(QIF(), window)
    found = (bias.shift.ratio, bias.stretch.ratio, bias.firing)
    assert found == pytest.approx((shift, stretch, firing), abs=0.0055)


def test_a_surrogate_that_draws_has_the_bias_of_its_mean():
    before = torch.get_rng_state()
    found = [surrogate_bias(QIF(), LocalZO(0.5)) for _ in range(2)]
    assert found[0] == found[1]
    assert torch.equal(torch.get_rng_state(), before)
    drawn = LocalZO(0.5, samples=10)
    v = torch.linspace(-1, 1, 9, dtype=torch.float64)
    given = drawn.constants(QIF())
    mean = drawn.slope(v.repeat(4000, 1), given).mean(0)
    torch.testing.assert_close(mean, drawn.mean_slope(v, given), rtol=0.05, atol=0.01)


@pytest.mark.parametrize(
    ("surrogate", "half"),
    [(Dspike(6.0, 0.2), 0.2), (Dspike(3.0, 0.5), 0.5), (Triangle(0.3), 0.3), (Rectangle(0.2), 0.2)],
    ids=str,
)
def test_jumps_and_bends_lie_between_the_pieces(surrogate, half):
    neuron = QIF()
    v = np.linspace(-half, half, 4001)  # beyond it a slope is 0
    slope = np.asarray(surrogate.slope(torch.from_numpy(v), surrogate.constants(neuron)))
    held = slope * neuron.density().pdf(v + neuron.threshold)
    found = surrogate_bias(neuron, surrogate)
    assert found.shift.surrogate == pytest.approx(np.trapezoid(held, v), rel=1e-6)


def test_agreement_is_of_directions_alone():
    """A box of any height around the mean agrees as well; one at the threshold, the better the
    narrower."""
    low, high = (surrogate_bias(QIF(), Rectangle(0.4, height=h)) for h in (0.3, 2.0))
    assert low.agreement == pytest.approx(high.agreement)
    widths = (0.01, 0.3, 0.6, 0.9)
    found = [surrogate_bias(QIF(), Rectangle(w, height=1.0)).agreement for w in widths]
    assert found == sorted(found, reverse=True)
    assert found[0] == pytest.approx(1.0, abs=1e-4)


def test_a_window_blind_to_a_stretch_agrees_by_the_shift_alone():
    """Without memory z(u_th) = 1: true slopes are equal, the literal window has only one."""
    assert surrogate_bias(MEMORYLESS, Window("mean")).agreement == pytest.approx(math.sqrt(0.5))
