"""Every loss and training aid against its NumPy statement, value and gradient."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
import torch

from quadspike import Taps
from quadspike import losses as package
from quadspike.call import Call
from tests.equations import aids, losses, surrogates
from tests.equations.recursion import backward, forward
from tests.method_cases import BATCH, CLOSE, QUARTER_LIF, STEPS, backends, drawn, layer

RNG = np.random.default_rng(12)
LOGITS, LABELS = RNG.normal(size=(4, 6, 5)), RNG.integers(0, 5, 6)
HEADS = RNG.normal(size=(2, 6, 5))
OF_LOGITS = {
    "ce": ("mean_cross_entropy", losses.ce, {}, {}),
    "tet": ("tet", losses.tet, {"weight": 0.3, "target": 0.7}, {"weight": 0.3, "target": 0.7}),
    "smooth": ("tet", losses.tet, {"label_smoothing": 0.1}, {"smoothing": 0.1}),
    "lts": ("lts", losses.lts, {}, {}),
}


def find(module, name):
    """A function of the package, or a skip until it is written."""
    try:
        found = getattr(importlib.import_module(module), name, None)
    except ModuleNotFoundError:
        found = None
    if found is None:
        pytest.skip(f"not there yet: {module}.{name}")
    return found


def assert_value_and_gradients(loss, expected, *arrays):
    """`loss` of tensors is `expected[0]`, its gradients the rest."""
    given = [torch.tensor(array, requires_grad=True) for array in arrays]
    value = loss(*given)
    value.backward()
    assert value.item() == pytest.approx(expected[0], rel=1e-12)
    for tensor, grad in zip(given, expected[1:], strict=True):
        np.testing.assert_allclose(tensor.grad.numpy(), grad, **CLOSE)


@pytest.mark.parametrize("name", OF_LOGITS)
def test_a_loss_is_its_statement(name):
    function, statement, options, theirs = OF_LOGITS[name]
    loss = find("quadspike.losses", function)
    labels = torch.tensor(LABELS)
    expected = statement(LOGITS, LABELS, **theirs)
    assert_value_and_gradients(lambda z: loss(z, labels, **options), expected, LOGITS)


def test_tet_of_one_step_without_its_regulariser_is_cross_entropy():
    expected = losses.ce(LOGITS[:1], LABELS)
    labels = torch.tensor(LABELS)
    assert_value_and_gradients(lambda z: package.tet(z, labels, weight=0.0), expected, LOGITS[:1])


@backends
def test_the_information_term_reaches_back_through_the_membranes(backend):
    soma = layer(backend, neuron={"name": "lif", "surrogate": "arctan"}, norm=None)
    x, weights = drawn(13)
    given = torch.tensor(x, requires_grad=True)
    call = Call(STEPS, BATCH, names={soma: "here"}, taps=Taps.of("mean"))
    out = soma(given.flatten(0, 1), call).view(x.shape)
    term = (call.seen["here"]["mean"].mean() - 0.5).square()
    ((out * torch.tensor(weights)).sum() + term).backward()
    value, (grad_u,) = losses.information([forward(QUARTER_LIF, x).u], [0.5])
    expected = backward(QUARTER_LIF, x, weights, surrogates.arctan(), grad_u=grad_u)
    assert term.item() == pytest.approx(value, rel=1e-10)
    np.testing.assert_allclose(given.grad.numpy(), expected.x, **CLOSE)


def test_im_loss_is_its_statement():
    loss = find("quadspike.losses", "im")
    membranes, targets = [RNG.normal(size=(4, 6, 3)), RNG.normal(size=(4, 6, 2, 2))], [0.5, 0.4]
    labels = torch.tensor(LABELS)

    def ours(logits, *layers):
        means = [u.flatten(1).mean(1) for u in layers]  # one a step, as taps give them
        return loss(logits, labels, means, targets, weight=0.3)

    value, g_logits, g_membranes = losses.im(LOGITS, LABELS, membranes, targets, 0.3)
    assert_value_and_gradients(ours, (value, g_logits, *g_membranes), LOGITS, *membranes)


def test_sml_is_its_statement():
    loss = find("quadspike.aids", "sml_loss")
    labels = torch.tensor(LABELS)
    value, g_main, g_heads = aids.sml(LOGITS.mean(0), list(HEADS), LABELS)
    expected = (value, np.broadcast_to(g_main / 4, LOGITS.shape), *g_heads)
    assert_value_and_gradients(lambda z, *heads: loss(z, heads, labels), expected, LOGITS, *HEADS)


@pytest.mark.parametrize("progress", [0.0, 0.25, 1.0])
def test_shortcuts_are_their_reconstruction(progress):
    loss = find("quadspike.aids", "shortcuts_loss")
    labels = torch.tensor(LABELS)
    share = aids.share(progress)
    value, g_main, g_branches = aids.shortcuts(LOGITS.mean(0), list(HEADS), LABELS, share)
    expected = (value, np.broadcast_to(g_main / 4, LOGITS.shape), *g_branches)
    assert_value_and_gradients(
        lambda z, *branches: loss(z, branches, labels, progress), expected, LOGITS, *HEADS
    )
