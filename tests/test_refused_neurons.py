"""What a neuron refuses, and what it says then."""

from __future__ import annotations

import math
import warnings

import pytest
import torch

from quadspike import LIF, QIF, QuadspikeError, QuadspikeWarning, create_neuron
from quadspike.neurons import GLIF, LSG, PLIF, LearnedQIF, Ternary, TrainedTernary
from quadspike.surrogates import Window

BAD_PARAMETERS = [
    (lambda: QIF(a=0.0), "a > 0"),
    (lambda: QIF(a=-1.0), "a > 0"),
    (lambda: QIF(a=math.nan), "finite"),
    (lambda: QIF(a="big"), "must be a number"),
    (lambda: QIF(a=torch.ones(1, 2, 3)), r"\[C\] or \[T, C\]"),
    (lambda: QIF(a=[0.25, 0.25], u1=[0.0] * 3), r"got a \(2,\), u1 \(3,\)"),
    (lambda: QIF(a=1j), "real number"),
    (lambda: QIF(u1=[0.0, 0.0], u2=1j), "conjugate"),
    (lambda: QIF(a=2.0, u1=-1.7, u2=-0.3), "no threshold is allowed"),
    (lambda: QIF(u1=-1.0, u2=-0.5, u_th=-0.2).density(), "give input_std"),
    (lambda: LIF(beta=[2.0, 3.0]), "got beta=2..3"),
    (lambda: QIF(u_th=0.4), "max"),
    (lambda: QIF(u_th=4.6), "u_th <= 4.5"),
    (lambda: QIF(u1=-5.0, u2=-5.0, u_th=1.0), "fixed points"),
    (lambda: QIF(u1=1j, u2=1j), "conjugate"),
    (lambda: QIF(a=torch.tensor([0.25, -0.1])), "a > 0"),
    (lambda: QIF.from_resting(0.25, 0.1, 5.0, u_th=0.5), "vertex"),
    (lambda: QIF.from_resting(0.25, 1.0, 1.0), "u_r < u_c"),
    (lambda: QIF.from_resting(0.25, 2.0, 1.0), "u_r < u_c"),
    (lambda: QIF.from_resting(-0.25, 0.0, 1.0), "a > 0"),
    (lambda: LIF(beta=1.5), "beta"),
    (lambda: LIF(u_th=0.0), "u_th > 0"),
    (lambda: PLIF(u_th=0.0), "u_th > 0"),
    (lambda: PLIF(w=1j), "real number"),
    (lambda: PLIF.from_tau(1.0), "tau > 1"),
    (lambda: LSG(b=math.nan), "finite"),
    (lambda: LSG(u_th=-1.0), "u_th > 0"),
    (lambda: GLIF(tau=0.5), "tau_logit"),
    (lambda: GLIF(tau_logit=math.inf), "finite"),
    (lambda: GLIF.from_values(gamma=1.5), r"gamma in \[0, 1\]"),
    (lambda: Ternary(beta=2.0), "0 <= beta <= 1"),
    (lambda: Ternary(u_th=0.0), "at -u_th"),
    (lambda: Ternary().density(), "has two"),
    (lambda: TrainedTernary(alpha=math.inf), "alpha must be a finite"),
    (lambda: LearnedQIF(u_th=0.4), "max"),
    (lambda: LearnedQIF(u1=1j, u2=-1j), "real number"),
    (lambda: create_neuron("qlf"), "did you mean 'qif'"),
    (lambda: create_neuron(QIF), "such as QIF"),
    (lambda: create_neuron({"name": "lif", "learned": ["beta"]}), "needs its value"),
    (lambda: create_neuron({"name": "lif", "learned": ["b"]}), "learned parameter"),
    (lambda: QIF.from_resting(0.25, "low", 4.5), "three finite numbers"),
    (lambda: QIF.from_resting(0.25, 0.0, math.inf), "three finite numbers"),
    (lambda: QIF(surrogate=Window), "such as ArcTan"),
    (lambda: create_neuron({"name": "qif", "b": 1}), "qif"),
    (lambda: QIF(surrogate="rectangel"), "did you mean 'rectangle'"),
]


@pytest.mark.parametrize(("make", "message"), BAD_PARAMETERS)
def test_bad_parameters_are_refused_with_the_reason(make, message):
    with pytest.raises(QuadspikeError, match=message):
        make()


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.zeros(0, 3), "has an empty axis"),
        (torch.zeros(3, 0, 4), "has an empty axis"),
        (torch.zeros(3), r"\[T, B, ...\]"),
        (torch.zeros(3, 2, dtype=torch.long), "floating"),
        ([[1.0]], "floating tensor"),
    ],
)
def test_bad_inputs_are_refused_with_the_reason(x, message):
    with pytest.raises(QuadspikeError, match=message):
        QIF()(x)


def test_parameters_and_states_must_fit_the_input():
    with pytest.raises(QuadspikeError, match="3 channels"):
        QIF(a=torch.full((3,), 0.25))(torch.zeros(2, 2, 4))
    with pytest.raises(QuadspikeError, match=r"what run\(\) returned beside the spikes, got tuple"):
        QIF().run(torch.zeros(2, 3), (torch.zeros(3), torch.zeros(3), 0))
    _, state = QIF().run(torch.zeros(2, 3))
    with pytest.raises(QuadspikeError, match="state"):
        QIF().run(torch.zeros(2, 4), state)


def test_an_unstable_resting_point_warns():
    with pytest.warns(QuadspikeWarning, match="unstable"):
        QIF.from_resting(1.0, 0.0, 2.5, u_th=2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        QIF.from_resting(1.0, 0.0, 1.9, u_th=1.5)
