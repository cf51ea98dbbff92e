"""The recurrence's mathematics against hand calculation, f itself, and the neuron."""

from __future__ import annotations

import math
import warnings
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from quadspike import LIF, QIF, QuadspikeError
from quadspike.analysis.dynamics import (
    FixedPoint,
    fixed_points,
    orbit,
    regions,
    simulate,
    step,
    theorem_error,
    u_min,
)
from quadspike.errors import QuadspikeWarning
from quadspike.neurons import NEURONS, create_neuron

COMPLEX = {"a": 0.25, "u_r": 0.1, "u_c": 5.0, "u_th": 0.6}


def floor_of_threshold(a: float, u_r: float, u_c: float) -> float:
    """The larger root, or the vertex, from the fixed points by Vieta."""
    total, product = u_r + u_c - 1 / a, u_r * u_c
    return total / 2 + math.sqrt(max(total**2 / 4 - product, 0.0))


@st.composite
def biophysical(draw: st.DrawFn) -> dict[str, float]:
    """Any a, u_r, u_c with a stable rest, and a threshold that they allow."""
    a = draw(st.floats(0.02, 2.0))
    u_r = draw(st.floats(-3.0, 3.0))
    u_c = u_r + draw(st.floats(0.05, 1.95)) / a
    low = floor_of_threshold(a, u_r, u_c)
    assume(low < u_c - 1e-3)  # fixed points far below zero leave no threshold
    u_th = low + draw(st.floats(0.01, 0.99)) * (u_c - low)
    return {"a": a, "u_r": u_r, "u_c": u_c, "u_th": u_th}


# -- fixed points ------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(biophysical())
def test_fixed_points_are_fixed_and_slopes_are_derivatives(given_: dict[str, float]) -> None:
    neuron = QIF.from_resting(**given_)
    scale = 1 / given_["a"] + abs(given_["u_r"])
    for point, expected in zip(fixed_points(neuron), (given_["u_r"], given_["u_c"]), strict=True):
        assert point.u == pytest.approx(expected, abs=1e-9 * scale)
        assert float(step(neuron, point.u)) == pytest.approx(point.u, abs=1e-9 * scale)
        h = 1e-3 * scale  # a central difference is exact for a parabola
        numeric = (step(neuron, point.u + h) - step(neuron, point.u - h)) / (2 * h)
        assert point.slope == pytest.approx(float(numeric), abs=1e-6)
    assert [point.stable for point in fixed_points(neuron)] == [True, False]


def test_a_slope_of_one_is_undecided() -> None:
    with pytest.warns(QuadspikeWarning):
        neuron = QIF(a=0.25, u2=4.0, u_th=5.0)
    rest = fixed_points(neuron)[0]
    assert (rest.slope, rest.stability, rest.stable) == (-1.0, "undecided", False)


def test_an_unstable_rest_is_told() -> None:
    with pytest.warns(QuadspikeWarning):
        neuron = QIF(a=0.5, u2=3.0, u_th=4.0)
    assert fixed_points(neuron)[0] == FixedPoint(0.0, -1.5)
    assert fixed_points(neuron)[0].stability == "unstable"


def test_a_stable_rest_away_from_zero_is_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        neuron = QIF.from_resting(a=0.25, u_r=2.0, u_c=7.0, u_th=3.0)
    assert fixed_points(neuron)[0].stable  # a (u_c - u_r) = 1.25, where a (u_c + u_r) = 2.25


def test_fixed_points_of_a_learned_neuron() -> None:
    neuron = QIF(a=torch.nn.Parameter(torch.tensor(0.25)))
    assert [point.u for point in fixed_points(neuron)] == pytest.approx([0.0, 4.5], abs=1e-6)


# -- regions, least value, thresholds ----------------------------------------------------


def test_regions_do_not_depend_on_the_order_of_the_roots() -> None:
    assert regions(QIF(u1=0.5, u2=0.0)) == regions(QIF())


def test_complex_roots_have_no_blue_region_and_no_zero() -> None:
    neuron = QIF.from_resting(**COMPLEX)
    red, green = regions(neuron)
    assert (red.name, green.name) == ("red", "green")
    assert red.high == green.low == pytest.approx(0.55)
    assert step(neuron, np.linspace(-50, 50, 10001)).min() > 0
    assert u_min(neuron) > 0


@settings(deadline=None, max_examples=60)
@given(biophysical())
def test_f_has_the_sign_its_region_says(given_: dict[str, float]) -> None:
    neuron = QIF.from_resting(**given_)
    least, slack = u_min(neuron), 1e-9 * (1 + 1 / given_["a"])
    found = regions(neuron)
    assert all(left.high == right.low for left, right in pairwise(found))
    for region in found:
        low = region.low if math.isfinite(region.low) else region.high - 10
        high = region.high if math.isfinite(region.high) else region.low + 10
        values = step(neuron, np.linspace(low, high, 9))
        assert (values >= least - slack).all()
        assert (values <= slack).all() if region.name == "blue" else (values >= -slack).all()


def test_u_min() -> None:
    neuron = QIF(a=0.3, u1=-0.7, u2=0.4, u_th=0.6)
    assert u_min(neuron) == pytest.approx(-0.3 / 4 * 1.1**2)
    assert u_min(neuron) == pytest.approx(step(neuron, np.linspace(-3, 3, 60001)).min())


@settings(deadline=None, max_examples=40)
@given(biophysical())
def test_a_neuron_allows_thresholds_from_the_green_region_to_u_c(given_: dict[str, float]) -> None:
    neuron = QIF.from_resting(**given_)
    low, high = regions(neuron)[-1].low, fixed_points(neuron)[1].u
    others = {name: given_[name] for name in ("a", "u_r", "u_c")}
    tolerance = 1e-6 * (1 / given_["a"] + abs(given_["u_r"]))
    assert low == pytest.approx(floor_of_threshold(**others), abs=tolerance)
    assert high == pytest.approx(given_["u_c"], abs=tolerance)
    gap = 1e-5 * (1 + abs(low) + abs(high))
    for u_th in (low - gap, high + gap):
        with pytest.raises(QuadspikeError, match="u_th"):
            QIF.from_resting(**others, u_th=u_th)


@pytest.mark.parametrize("ask", [fixed_points, regions, u_min])
def test_only_a_qif_has_this_map(ask: object) -> None:
    with pytest.raises(QuadspikeError, match="LIF"):
        ask(LIF())  # type: ignore[operator]


# -- orbits and simulation ---------------------------------------------------------------


def test_orbit_by_hand() -> None:
    assert orbit(QIF(), -1.0, 2).tolist() == [-1.0, 0.375, 0.25 * 0.375 * (0.375 - 0.5)]
    assert orbit(QIF(), 0.0, 1, input=0.7).tolist() == [0.0, 0.7]
    assert orbit(LIF(beta=0.5), 1.0, 2).tolist() == [1.0, 0.5, 0.25]
    assert orbit(QIF(), 0.3, 0).tolist() == [0.3]


@pytest.mark.parametrize("start", [-3.9, -1.0, 0.25, 0.49, 3.0, 4.49])
def test_orbits_below_the_critical_point_come_to_rest(start: float) -> None:
    assert abs(orbit(QIF(), start, 60)[-1]) < 1e-12


def test_an_orbit_beyond_the_critical_point_runs_away_to_inf() -> None:
    path = orbit(QIF(), 4.51, 60)
    assert (np.diff(path[:10]) > 0).all()
    assert path[-1] == math.inf
    assert not np.isnan(path).any()


@pytest.mark.parametrize(("start", "steps"), [(math.nan, 3), (math.inf, 3), (0.0, -1)])
def test_orbit_refuses(start: float, steps: int) -> None:
    with pytest.raises(QuadspikeError, match="orbit"):
        orbit(QIF(), start, steps)


@pytest.mark.parametrize(
    "neuron",
    [
        QIF(),
        QIF(u1=0.5, u2=0.0),
        QIF.from_resting(**COMPLEX),
        QIF(u_reset=-0.2),
        LIF(),
        LIF(beta=0.9, u_th=1.0),
    ],
    ids=str,
)
def test_simulate_is_the_neuron(neuron: QIF | LIF) -> None:
    x = np.random.default_rng(1).normal(0, 0.7, (40, 25))
    membranes, spikes = simulate(neuron, x)
    assert 0 < spikes.mean() < 1
    assert np.array_equal(spikes, neuron(torch.from_numpy(x)).numpy())
    assert np.array_equal(spikes, membranes >= float(neuron.threshold))
    state = neuron.run(torch.from_numpy(x))[1]
    assert np.allclose(membranes[-1], state.u.numpy(), rtol=0, atol=1e-14)
    alone = simulate(neuron, x[:, 3])
    assert alone.membranes.shape == alone.spikes.shape == (40,)
    assert np.array_equal(alone.membranes, membranes[:, 3])


@pytest.mark.parametrize("name", NEURONS)
def test_simulate_is_every_neuron(name: str) -> None:
    worth = {"alpha": 0.5} if name == "ternary-trained" else {}
    neuron = create_neuron({"name": name, **worth})
    if name == "im-lif":
        neuron.fit(1, timesteps=4)
    x = torch.randn(4, 500, dtype=torch.float64)
    assert torch.equal(torch.from_numpy(simulate(neuron, x.numpy()).spikes), neuron(x))


def test_simulate_resets_after_a_spike() -> None:
    membranes, spikes = simulate(QIF(u_reset=-0.2), [0.9, 0.1, 0.0])
    assert spikes.tolist() == [1.0, 0.0, 0.0]
    assert membranes.tolist() == pytest.approx([0.9, -0.1, 0.25 * -0.1 * -0.6])


@pytest.mark.parametrize("x", [0.3, np.zeros((2, 2, 2)), []])
def test_simulate_refuses_other_shapes(x: object) -> None:
    with pytest.raises(QuadspikeError, match=r"\[T\] or \[T, N\]"):
        simulate(QIF(), x)  # type: ignore[arg-type]


def test_parameters_per_channel_are_refused() -> None:
    with pytest.raises(QuadspikeError, match="one set of parameters"):
        simulate(QIF(a=[0.2, 0.25]), [0.1])


# -- Theorem 1 ---------------------------------------------------------------------------


def test_theorem_error_of_one_neuron() -> None:
    neuron = QIF(a=0.4, u2=-0.3, u_th=0.7)
    error = theorem_error([0.4], [-0.3], u_th=0.7)
    exact = neuron.density()
    mean = 0.4 * 0.7**2
    std = 0.7 * math.sqrt(1 + 0.4**2 * (2 * 0.7**2 + 0.3**2))
    assert error.mean[0, 0] == pytest.approx((mean - exact.mean) / exact.std, abs=1e-8)
    assert error.std[0, 0] == pytest.approx((std - exact.std) / exact.std, abs=1e-8)


def test_theorem_error_is_nan_exactly_where_no_neuron_is() -> None:
    a, u2 = [-0.1, 0.2, 0.9, 3.0], [-1.5, 0.0, 0.4, 0.5, 0.51]
    error = theorem_error(a, u2)  # a = 3 has an unstable rest: no warning may leak
    allowed = [[c > 0 and max(0, r) <= 0.5 <= r + 1 / c for c in a] for r in u2]
    assert error.std.shape == error.mean.shape == (5, 4)
    assert np.array_equal(np.isfinite(error.std), allowed)
    assert np.array_equal(np.isfinite(error.mean), allowed)


def test_theorem_error_depends_on_parameters_in_units_of_the_threshold() -> None:
    one, two = theorem_error([0.25], [0.5], u_th=0.5), theorem_error([0.125], [1.0], u_th=1.0)
    assert one.std[0, 0] == pytest.approx(two.std[0, 0], rel=1e-6)
    assert one.mean[0, 0] == pytest.approx(two.mean[0, 0], rel=1e-6)


def test_theorem_error_needs_a_positive_threshold() -> None:
    with pytest.raises(QuadspikeError, match="u_th"):
        theorem_error([0.25], [0.0], u_th=0.0)
