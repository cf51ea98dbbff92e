"""Every neuron and norm against its NumPy statement, forward and gradient."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from quadspike import LIF, QIF, Soma, create_neuron
from quadspike.neurons import NEURONS
from quadspike.norms import NORMS
from tests.equations import aids, im_lif, norms, qif, surrogates
from tests.equations import lif as lif_statement
from tests.equations import qif as qif_statement
from tests.equations.recursion import backward, forward
from tests.method_cases import (
    BATCH,
    CASES,
    CHANNELS,
    CLOSE,
    QUARTER_LIF,
    STEPS,
    assert_same,
    backends,
    drawn,
    layer,
    learned,
    outcome,
    stirred,
)

# -- neurons -----------------------------------------------------------------------------------


def test_every_neuron_has_a_statement():
    assert {*CASES, "im-lif"} == set(NEURONS)


@backends
@pytest.mark.parametrize("detach", [False, True])
@pytest.mark.parametrize("surrogate", [None, "arctan"])
@pytest.mark.parametrize("name", CASES)
def test_a_neuron_is_its_statement(name, surrogate, detach, backend):
    case = CASES[name]
    spec = {"name": name, "detach_reset": detach}
    soma = layer(backend, neuron=spec | ({"surrogate": surrogate} if surrogate else {}), norm=None)
    stirred(soma.neuron)
    values = learned(soma.neuron)
    assert set(values) == set(case.names)
    truth = case.truth(**{theirs: values[mine] for mine, theirs in case.names.items()})
    slope = surrogates.arctan() if surrogate else case.surrogate(truth.values)
    x, weights = drawn(1)
    trace = forward(truth, x)
    assert 0.05 < np.abs(trace.o).mean() < 0.95
    ours = outcome(soma, x, weights)
    assert_same(ours, trace, backward(truth, x, weights, slope, detach), case.names)


@pytest.mark.parametrize("name", CASES)
def test_a_neuron_starts_where_its_paper_does(name):
    case, neuron = CASES[name], create_neuron(name)
    neuron.fit(CHANNELS, STEPS)
    assert neuron.detach_reset == case.detach_reset
    values = learned(neuron)
    for mine, theirs in case.names.items():
        np.testing.assert_allclose(values[mine], case.start[theirs], rtol=1e-6, atol=1e-7)


@backends
@pytest.mark.parametrize("shape", [(), (CHANNELS,), (STEPS, CHANNELS)])
@pytest.mark.parametrize("kind", ["qif", "lif"])
def test_learned_numbers_a_layer_a_channel_or_a_step(kind, shape, backend):
    makers = {
        "qif": (QIF, qif_statement.QIF, {"a": 0.3, "u1": 0.2, "u2": -0.1, "u_th": 0.5}),
        "lif": (LIF, lif_statement.LIF, {"beta": 0.4, "u_th": 0.5}),
    }
    ours, theirs, centre = makers[kind]
    rng = np.random.default_rng(2)
    values = {k: v + 0.05 * rng.random(shape) for k, v in {**centre, "u_reset": 0.1}.items()}
    parameters = {k: nn.Parameter(torch.tensor(v)) for k, v in values.items()}
    soma = layer(backend, neuron=ours(**parameters, surrogate="arctan"), norm=None)
    truth = theirs(**values)
    x, weights = drawn(3)
    expected = backward(truth, x, weights, surrogates.arctan())
    names = {name: name for name in values}
    assert_same(outcome(soma, x, weights), forward(truth, x), expected, names)


@pytest.mark.parametrize("steps", [1, 2, 7])
@pytest.mark.parametrize("detach", [False, True])
@pytest.mark.parametrize(
    ("kind", "statement", "numbers"),
    [
        (QIF, qif_statement.QIF, {"a": 0.3, "u1": 0.4, "u2": -0.2, "u_th": 0.45, "u_reset": -0.1}),
        (LIF, lif_statement.LIF, {"beta": 0.6, "u_th": 0.8, "u_reset": 0.1}),
    ],
)
def test_a_neuron_alone_with_fixed_numbers_and_no_channels(kind, statement, numbers, detach, steps):
    neuron, truth = kind(**numbers, surrogate="triangle", detach_reset=detach), statement(**numbers)
    rng = np.random.default_rng(3)
    x, weights = rng.normal(0, 0.6, (2, steps, 200))
    given = torch.tensor(x, requires_grad=True)
    out = neuron(given)
    (out * torch.tensor(weights)).sum().backward()
    expected = backward(truth, x, weights, surrogates.triangle(), detach)
    np.testing.assert_array_equal(out.detach().numpy(), forward(truth, x).out)
    np.testing.assert_allclose(given.grad.numpy(), expected.x, **CLOSE)


@backends
@pytest.mark.parametrize("center", ["mean", "threshold"])
def test_qif_s_windows(center, backend):
    numbers = {"a": 0.3, "u1": 0.4, "u2": -0.2, "u_th": 0.45}
    spec = {"name": "qif", "surrogate": {"name": "window", "center": center}, **numbers}
    soma = layer(backend, neuron=spec, norm=None)
    truth = qif_statement.QIF(**numbers)
    slope = surrogates.window(*qif.statistics(**numbers), 0.45, center)
    x, weights = drawn(4)
    assert_same(outcome(soma, x, weights), forward(truth, x), backward(truth, x, weights, slope))


@backends
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("norm", [None, "tdbn"])
def test_im_lif_is_its_reconstruction(norm, causal, backend):
    soma = layer(backend, neuron={"name": "im-lif", "causal": causal}, norm=norm)
    stirred(soma)
    values = learned(soma.neuron)
    assert {name: value.shape for name, value in values.items()} == {
        "squeeze": (STEPS, STEPS),
        "excite": (STEPS, STEPS),
    }
    w1, w2 = values["squeeze"], values["excite"]
    x, weights = drawn(5)
    current, before = x, None
    if norm:
        parameters = learned(soma.norm)
        before = norms.Norm(parameters["weight"], parameters["bias"], gain=0.5)
        current = before.forward(x)
    mixed = im_lif.mix(current, w1, w2, causal)
    through = backward(QUARTER_LIF, mixed, weights, surrogates.rectangle(0.5))
    g_x, g_w1, g_w2 = im_lif.mix_backward(current, w1, w2, through.x, causal)
    ours = outcome(soma, x, weights)
    np.testing.assert_allclose(ours.out, forward(QUARTER_LIF, mixed).out, **CLOSE)
    np.testing.assert_allclose(ours.parameters["neuron.squeeze"], g_w1, **CLOSE)
    np.testing.assert_allclose(ours.parameters["neuron.excite"], g_w2, **CLOSE)
    np.testing.assert_allclose(ours.x, before.backward(x, g_x)[0] if before else g_x, **CLOSE)


@backends
def test_imp_starts_every_sample_from_the_membrane_it_learned(backend):
    soma = layer(backend, neuron={"name": "lif", "surrogate": "arctan"}, norm=None)
    x, weights = drawn(6)
    u0 = np.random.default_rng(7).uniform(-0.2, 0.6, (1, *x.shape[2:]))
    soma.start_from(torch.tensor(u0[0]))
    ours = outcome(soma, x, weights)
    initial = aids.imp(u0, BATCH)
    expected = backward(QUARTER_LIF, x, weights, surrogates.arctan(), initial=initial)
    assert_same(ours, forward(QUARTER_LIF, x, initial), expected)
    got = ours.parameters["initial_u"][None]
    np.testing.assert_allclose(got, aids.imp_backward(expected.initial), **CLOSE)


@pytest.mark.parametrize(
    ("moved", "allowed"),
    [
        ({"a": 0.3, "u1": -0.1, "u2": 0.4, "u_th": 0.6}, True),
        ({"a": -0.2}, False),
        ({"u2": 0.9}, False),
        ({"u1": 0.8}, False),
        ({"u_th": 5.0}, False),
        ({"u_th": -0.3}, False),
        ({"u1": -3.0, "u2": -3.0}, False),
        ({"a": 3.0, "u1": 2.0, "u2": -1.0, "u_th": 9.0}, False),
    ],
)
def test_a_learned_qif_is_put_back_into_what_is_allowed(moved, allowed):
    neuron = create_neuron("qif-learned").double()
    with torch.no_grad():
        for name, value in moved.items():
            getattr(neuron, name).fill_(value)
    before = {name: float(value) for name, value in learned(neuron).items()}
    assert qif.allowed(**before) == allowed
    neuron.project()
    after = {name: float(value) for name, value in learned(neuron).items()}
    assert qif.allowed(**after, slack=1e-6)
    if allowed:
        assert after == before


# -- norms -------------------------------------------------------------------------------------


def normed(name, values):
    """The statement of a norm of the current, and of one of the membrane, if it has one."""
    weight, bias = values["weight"], values["bias"]
    if name == "tebn":
        (p,) = [value for key, value in values.items() if key not in ("weight", "bias")]
        return norms.TEBN(weight, bias, p.reshape(-1)), None
    if name == "mpbn":
        inner = norms.Norm(values["membrane.weight"], values["membrane.bias"], axis=1)
        return norms.Norm(weight, bias), inner
    return norms.Norm(weight, bias, gain={"tdbn": 0.7 * 0.5, "bn": 1.0}[name]), None


@backends
@pytest.mark.parametrize("detach", [False, True])
@pytest.mark.parametrize("name", NORMS)
def test_a_norm_is_its_statement(name, detach, backend):
    spec = {"name": "lif", "surrogate": "arctan", "detach_reset": detach}
    soma = layer(backend, neuron=spec, norm=name, eta=0.7)
    stirred(soma.norm)
    with torch.no_grad():
        [*_, last] = soma.norm.modules()
        last.weight[1] = -0.8
    x, weights = drawn(11, spread=2.0)
    norm, membrane = normed(name, learned(soma.norm))
    current = norm.forward(x)
    trace = forward(QUARTER_LIF, current, membrane=membrane)
    assert 0.02 < trace.o.mean() < 0.98
    through = backward(
        QUARTER_LIF, current, weights, surrogates.arctan(), detach, membrane=membrane
    )
    g_x, grads = norm.backward(x, through.x)
    ours = outcome(soma, x, weights)
    np.testing.assert_allclose(ours.out, trace.out, **CLOSE)
    np.testing.assert_allclose(ours.x, g_x, **CLOSE)
    for key, grad in ours.parameters.items():
        short = key.removeprefix("norm.")
        if short.startswith("membrane."):
            expected = through.parameters[short]
        else:
            expected = grads[short if short in grads else "p"]
        np.testing.assert_allclose(grad.reshape(expected.shape), expected, **CLOSE)
    assert len(ours.parameters) == len(learned(soma.norm))
    followed = [norms.Norm(np.ones(CHANNELS), 0.0).statistics(x)]
    assert_running(soma.norm, followed)
    if membrane is not None:
        assert_running(soma.norm.membrane, [membrane.statistics(u) for u in trace.u])


def assert_running(norm, followed):
    mean, var = norms.running(followed)
    np.testing.assert_allclose(norm.running_mean.numpy(), mean, **CLOSE)
    np.testing.assert_allclose(norm.running_var.numpy(), var, **CLOSE)


@pytest.mark.parametrize("backend", ["reference", "auto"])
def test_mpbn_at_inference_uses_its_running_statistics(backend):
    """Learned gains of either sign."""
    soma = Soma(CHANNELS, neuron="lif", norm="mpbn", timesteps=STEPS, backend=backend).double()
    rng = np.random.default_rng(23)
    statement = norms.RunningNorm(
        weight=np.array([0.8, -1.1, 0.0, 0.0, 2.0]),
        bias=np.array([0.1, 0.2, 0.6, 0.4, -0.3]),
        mean=rng.normal(0, 0.3, CHANNELS),
        var=0.5 + rng.random(CHANNELS),
    )
    inner = soma.norm.membrane
    held = (inner.weight, inner.bias, inner.running_mean, inner.running_var)
    x = drawn(24)[0]
    expected = forward(QUARTER_LIF, x / np.sqrt(1 + 1e-5), membrane=statement)
    with torch.no_grad():
        for tensor, value in zip(held, statement, strict=False):
            tensor.copy_(torch.tensor(value))
        np.testing.assert_array_equal(soma.eval()(torch.tensor(x)).numpy(), expected.out)


@pytest.mark.parametrize("name", ["tebn", "mpbn"])
def test_a_norm_starts_as_its_paper_s(name):
    values = learned(layer("reference", neuron="lif", norm=name).norm)
    for key, value in values.items():
        assert np.all(value == (0.0 if key.endswith("bias") else 1.0)), key
    assert sum(value.size == STEPS for value in values.values()) == (name == "tebn")
