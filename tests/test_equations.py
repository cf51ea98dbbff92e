"""The NumPy statements themselves: gradients by finite differences, and known special cases.

A step has no derivative to compare with. So each recursion also runs with a smooth step whose
derivative is the surrogate: then the surrogate gradient is the true one.
"""

from __future__ import annotations

import ast
import math
from pathlib import Path

import numpy as np
import pytest

from tests import equations
from tests.differences import assert_gradient
from tests.equations import aids, im_lif, norms, qif, surrogates
from tests.equations.glif import GLIF
from tests.equations.lif import LIF, LSG, PLIF
from tests.equations.qif import QIF
from tests.equations.recursion import backward, forward, logit, sigma
from tests.equations.ternary import Ternary

RNG = np.random.default_rng(6)
SHAPE = (3, 2, 2, 2)  # T, B, C, space
X, G = RNG.normal(0, 0.8, SHAPE), RNG.normal(size=SHAPE)
STEEP = 3.0


def near(*shape):
    return RNG.normal(0, 0.3, shape)


PER_CHANNEL = ("A", "B", "G", "tau", "u_th", "leak", "u_re")
NEURONS = {
    "lif": LIF(0.4, 0.6, -0.1),
    "lif-channels-steps": LIF(np.array([0.2, 0.6]), 0.5 + near(3, 2) / 3, 0.1),
    "plif": PLIF(0.3, 0.5, 0.1),
    "lsg": LSG(-0.7),
    "qif": QIF(0.3, 0.4, -0.2, 0.45, -0.1),
    "qif-channels": QIF(np.array([0.2, 0.4]), near(2), near(2), 0.5, near(2)),
    "glif": GLIF(**{name: near(2) for name in PER_CHANNEL}, g=near(3, 2)),
    "ternary": Ternary(0.3, 0.5, np.array([1.3, 0.8])),
}


AFTER_IMPORT = RNG.bit_generator.state


@pytest.fixture(autouse=True)
def same_draws_in_any_order():
    RNG.bit_generator.state = AFTER_IMPORT


def smooth(v):
    return np.tanh(STEEP * v) / 2 + 0.3


def slope(v):
    return STEEP * (1 - np.tanh(STEEP * v) ** 2) / 2


def test_the_statements_import_nothing_of_the_package():
    allowed = {"__future__", "collections", "math", "numpy", "types", "typing"}
    for file in Path(equations.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                assert {alias.name for alias in node.names} <= allowed
            elif isinstance(node, ast.ImportFrom):
                assert node.module is not None
                top = node.module.split(".")[0]
                assert top in allowed or node.module.startswith("tests.equations"), node.module


# -- neurons -----------------------------------------------------------------------------------


@pytest.mark.parametrize("detach", [False, True])
@pytest.mark.parametrize("name", NEURONS)
def test_a_neuron_s_gradients_are_those_of_its_smooth_version(name, detach):
    neuron, start = NEURONS[name], near(*SHAPE[1:])
    spikes = forward(neuron, X, start, step=smooth).o
    resets = spikes if detach else None

    def loss(x=X, initial=start):
        return (G * forward(neuron, x, initial, step=smooth, resets=resets).out).sum()

    got = backward(neuron, X, G, slope, detach, start, step=smooth)
    assert_gradient(got.x, loss, X)
    assert_gradient(got.initial, lambda u: loss(initial=u), start)
    for key, value in list(neuron.values.items()):

        def at(other, key=key, value=value):
            neuron.values[key] = other
            result = loss()
            neuron.values[key] = value
            return result

        assert_gradient(got.parameters[key], at, value)


def test_imp_s_gradient_sums_over_the_batch():
    u0 = near(1, *SHAPE[2:])

    def loss(u):
        return (G * forward(LIF(), X, aids.imp(u, SHAPE[1]), step=smooth).out).sum()

    got = backward(LIF(), X, G, slope, initial=aids.imp(u0, SHAPE[1]), step=smooth)
    assert_gradient(aids.imp_backward(got.initial), loss, u0)


def test_spikes_by_hand():
    x = np.array([0.4, 0.6, -0.2]).reshape(3, 1, 1)
    trace = forward(LIF(), x)
    np.testing.assert_allclose(trace.u.ravel(), [0.4, 0.7, -0.2])
    assert trace.o.ravel().tolist() == [0, 1, 0]
    np.testing.assert_allclose(
        forward(QIF(), x).u.ravel(), [0.4, 0.25 * 0.4 * (0.4 - 0.5) + 0.6, -0.2]
    )
    np.testing.assert_allclose(forward(PLIF(), x).u.ravel(), [0.2, 0.4, 0.1])
    np.testing.assert_allclose(forward(Ternary(), -x).u.ravel(), [-0.4, -0.7, 0.2])
    assert forward(Ternary(), -x).o.ravel().tolist() == [0, -1, 0]


@pytest.mark.parametrize(
    "neuron", [LIF(), QIF(), PLIF(), LSG(), Ternary()], ids=lambda n: type(n).__name__
)
def test_a_membrane_at_its_threshold_fires(neuron):
    scale = 2 if isinstance(neuron, PLIF) else 1
    assert forward(neuron, np.full((1, 1, 1), 0.5 * scale)).o.item() == 1
    assert forward(neuron, np.full((1, 1, 1), np.nextafter(0.5, 0) * scale)).o.item() == 0


def test_values_at_the_start():
    assert sigma(LSG().values["b"]) == pytest.approx(0.2)
    assert LSG().values["b"] == pytest.approx(-1.3863, abs=1e-4)
    start = {name: float(value) for name, value in GLIF.at_start().values.items()}
    assert (start["A"], start["B"]) == pytest.approx((0.2007, 0.6190), abs=1e-4)
    assert sigma(start["leak"]) == pytest.approx(0.0625)
    assert qif.statistics(0.25, 0.0, 0.5, 0.5) == pytest.approx((0.0625, 0.51158), abs=1e-5)
    assert qif.fixed_points(0.25, 0.0, 0.5) == pytest.approx((0, 4.5))
    assert qif.allowed(0.25, 0.0, 0.5, 0.5)
    assert not qif.allowed(0.25, 0.0, 0.5, 0.49)
    assert not qif.allowed(0.25, 0.0, 0.5, 4.51)


def same(one, other, scale=1.0):
    """Both neurons spike alike and hand the same gradient to a common input."""
    np.testing.assert_array_equal(forward(one, X).o, forward(other, scale * X).o)
    mine, theirs = backward(one, X, G, slope), backward(other, scale * X, G, slope)
    np.testing.assert_allclose(mine.x, scale * theirs.x, rtol=1e-12)


def test_glif_with_its_gates_at_the_ends_is_lif():
    shut = {"A": 40.0, "B": -40.0, "G": 40.0, "leak": 1.0, "u_re": -1.0, "g": 0.4}
    same(GLIF(**shut, tau=logit(0.3), u_th=logit(0.6)), LIF(0.3, 0.6))


def test_plif_at_tau_2_is_lif_with_half_the_input():
    same(PLIF(0.0), LIF(0.5), scale=0.5)


def test_ternary_with_non_negative_input_is_binary():
    x = np.abs(X)
    np.testing.assert_array_equal(forward(Ternary(), x).o, forward(LIF(), x).o)
    ternary = backward(Ternary(), x, G, surrogates.rectangle(1.0), detach_reset=True)
    binary = backward(LIF(), x, G, surrogates.rectangle(1.0, offset=-0.5), detach_reset=True)
    np.testing.assert_array_equal(ternary.x, binary.x)


@pytest.mark.parametrize("causal", [True, False])
def test_im_lif_s_mixing(causal):
    w1, w2 = RNG.normal(size=(2, 3)), RNG.normal(size=(3, 2))
    g_x, g_w1, g_w2 = im_lif.mix_backward(X, w1, w2, G, causal)
    assert_gradient(g_x, lambda x: (G * im_lif.mix(x, w1, w2, causal)).sum(), X)
    assert_gradient(g_w1, lambda w: (G * im_lif.mix(X, w, w2, causal)).sum(), w1)
    assert_gradient(g_w2, lambda w: (G * im_lif.mix(X, w1, w, causal)).sum(), w2)
    later = X.copy()
    later[-1] += 1
    change = np.abs(im_lif.mix(later, w1, w2, causal) - im_lif.mix(X, w1, w2, causal))[:-1].max()
    assert (change == 0) == causal


# -- norms -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["bn", "tdbn", "tebn"])
def test_a_norm_s_gradients(kind):
    parameters = {"weight": RNG.normal(size=2), "bias": near(2)}
    if kind == "tebn":
        parameters["p"] = RNG.normal(1, 0.2, 3)

    def made(**changed):
        given = {**parameters, **changed}
        return norms.TEBN(**given) if kind == "tebn" else norms.Norm(**given, gain=gain)

    gain = 0.35 if kind == "tdbn" else 1.0
    g_x, grads = made().backward(X, G)
    assert_gradient(g_x, lambda x: (G * made().forward(x)).sum(), X)
    for name, value in parameters.items():
        assert_gradient(grads[name], lambda v, n=name: (G * made(**{n: v}).forward(X)).sum(), value)


def test_tdbn_makes_the_current_as_wide_as_the_threshold():
    y = norms.Norm(np.ones(2), np.zeros(2), gain=0.5).forward(100 * X + 3)
    np.testing.assert_allclose(y.mean((0, 1, 3)), 0, atol=1e-12)
    np.testing.assert_allclose(y.std((0, 1, 3)), 0.5, rtol=1e-4)


@pytest.mark.parametrize("detach", [False, True])
def test_mpbn_s_gradients(detach):
    weight, bias = np.array([0.7, -0.9]), near(2)
    neuron = LIF()

    def membrane(weight=weight, bias=bias):
        return norms.Norm(weight, bias, axis=1)

    resets = forward(neuron, X, membrane=membrane(), step=smooth).o if detach else None

    def loss(x=X, **changed):
        out = forward(neuron, x, membrane=membrane(**changed), step=smooth, resets=resets).out
        return (G * out).sum()

    got = backward(neuron, X, G, slope, detach, membrane=membrane(), step=smooth)
    assert_gradient(got.x, loss, X)
    assert_gradient(got.parameters["membrane.weight"], lambda w: loss(weight=w), weight)
    assert_gradient(got.parameters["membrane.bias"], lambda b: loss(bias=b), bias)


def test_mpbn_folded_equals_unfolded_whatever_the_sign_of_its_gain():
    weight = np.array([0.8, -1.1, 0.0, 0.0])
    bias = np.array([0.1, 0.2, 0.6, 0.4])
    norm = norms.RunningNorm(weight, bias, near(4), 0.5 + RNG.random(4))
    x = RNG.normal(size=(5, 8, 4, 3))
    level, sign = norms.fold(norm, 0.5)
    unfolded = forward(LIF(), x, membrane=norm)
    u, o = np.zeros_like(x[0]), np.zeros_like(x[0])
    for t, current in enumerate(x):
        u = 0.25 * u * (1 - o) + current
        o = norms.folded_step(u, level, sign)
        np.testing.assert_array_equal(o, unfolded.o[t])
    assert 0 < unfolded.o[:, :, 0].mean() < 1
    assert 0 < unfolded.o[:, :, 1].mean() < 1
    assert unfolded.o[:, :, 2].all()
    assert not unfolded.o[:, :, 3].any()


# -- surrogates --------------------------------------------------------------------------------

PRIMITIVES = {
    "arctan": (surrogates.arctan(2.0), lambda v: np.arctan(math.pi * v) / math.pi),
    "sigmoid": (surrogates.sigmoid(4.0), lambda v: sigma(4 * v)),
    "dspike": (surrogates.dspike(3.0), lambda v: np.tanh(3 * v) / (2 * math.tanh(1.5))),
    "sml": (surrogates.dspike(2.5, 1.0), lambda v: np.tanh(2.5 * v) / (2 * math.tanh(2.5))),
    "evolving": (surrogates.evolving(0.0), lambda v: np.tanh(v) / 2),
    "triangle": (surrogates.triangle(1.0), lambda v: v - np.sign(v) * v**2 / 2),
}


@pytest.mark.parametrize("name", PRIMITIVES)
def test_a_surrogate_is_the_slope_of_its_smooth_step(name):
    slope_, primitive = PRIMITIVES[name]
    v = np.array([-0.43, -0.2, 0.05, 0.31, 0.49])
    np.testing.assert_allclose(slope_(v), (primitive(v + 1e-6) - primitive(v - 1e-6)) / 2e-6)


def test_boxes_close_where_they_should():
    wide = surrogates.learned_width(0.2, 0.5)
    assert wide(np.array([0.5099, 0.51])).tolist() == pytest.approx([1 / 1.0198, 0], abs=1e-4)
    paper = surrogates.window(*qif.statistics(0.25, 0.0, 0.5, 0.5), 0.5)
    assert paper(np.array([-0.4491, -0.4490, 0.5740, 0.5742]) - 0.5).tolist() == [0, 1, 1, 0]
    assert surrogates.dspike()(np.array([-0.51, 0.51])).tolist() == [0, 0]


def test_the_evolving_tanh_goes_from_its_least_to_its_largest_steepness():
    assert surrogates.steepness(0.0) == 1.0
    assert surrogates.steepness(1.0) == 10.0
    assert surrogates.steepness(0.5) == pytest.approx(10**0.5)


@pytest.mark.parametrize("v", [0.0, 0.3, -0.9])
def test_local_zo_s_mean_is_the_gaussian_surrogate(v):
    z = RNG.normal(size=(5, 200_000))
    got = surrogates.local_zo(z)(np.full(200_000, v))
    variance = surrogates.local_zo_variance(v, 5)
    assert got.mean() == pytest.approx(surrogates.gaussian()(v), abs=5 * (variance / 2e5) ** 0.5)
    assert got.var() == pytest.approx(variance, rel=0.03)
