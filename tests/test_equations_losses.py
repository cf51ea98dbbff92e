"""The NumPy statements of losses and training aids, by finite differences and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.differences import assert_gradient
from tests.equations import aids, losses, surrogates
from tests.equations.lif import LIF
from tests.equations.recursion import backward, forward, sigma

LOGITS, LABELS = np.random.default_rng(7).normal(size=(3, 2, 4)), np.array([2, 0])


@pytest.mark.parametrize("loss", [losses.ce, losses.tet, losses.lts])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_a_loss_s_gradient(loss, smoothing):
    _, grad = loss(LOGITS, LABELS, smoothing=smoothing)
    assert_gradient(grad, lambda z: loss(z, LABELS, smoothing=smoothing)[0], LOGITS)


def test_losses_by_hand():
    z = np.array([[[1.0, 2.0, 0.5]], [[0.0, -1.0, 3.0]]])
    each = [math.log(sum(math.exp(v) for v in step[0])) - step[0, 2] for step in z]
    assert losses.lts(z, np.array([2]))[0] == pytest.approx(each[1])
    assert losses.tet(z, np.array([2]), 0.0)[0] == pytest.approx(sum(each) / 2)
    assert losses.ce(z[:1], np.array([2]))[0] == pytest.approx(each[0])


def test_tet_of_one_step_without_its_regulariser_is_cross_entropy():
    one = LOGITS[:1]
    for got, expected in zip(losses.tet(one, LABELS, 0.0), losses.ce(one, LABELS), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-14)


def test_im_loss_s_gradients():
    rng = np.random.default_rng(8)
    layers, targets = [rng.normal(size=(2, 2, 3)), rng.normal(size=(2, 2, 2, 2))], [0.5, 0.4]
    value, g_logits, g_layers = losses.im(LOGITS, LABELS, layers, targets, 0.3)
    misses = [layer.mean() - target for layer, target in zip(layers, targets, strict=True)]
    expected = losses.ce(LOGITS, LABELS)[0] + 0.3 * (misses[0] ** 2 + misses[1] ** 2) / 2
    assert value == pytest.approx(expected)
    assert_gradient(g_logits, lambda z: losses.im(z, LABELS, layers, targets, 0.3)[0], LOGITS)
    for i, layer in enumerate(layers):

        def at(u, i=i):
            changed = [u if j == i else other for j, other in enumerate(layers)]
            return losses.im(LOGITS, LABELS, changed, targets, 0.3)[0]

        assert_gradient(g_layers[i], at, layer)


def test_im_loss_through_a_neuron():
    rng = np.random.default_rng(9)
    x = rng.normal(size=(3, 2, 2))

    def step(v):
        return sigma(4 * v)

    def loss(x):
        return losses.information([forward(LIF(), x, step=step).u], [0.5])[0]

    _, (grad_u,) = losses.information([forward(LIF(), x, step=step).u], [0.5])
    silent = np.zeros_like(x)
    got = backward(LIF(), x, silent, surrogates.sigmoid(4.0), step=step, grad_u=grad_u)
    assert_gradient(got.x, loss, x)


def test_sml_s_gradients_hold_the_teachers_still():
    main, heads = LOGITS[0], [LOGITS[1], LOGITS[2]]
    value, g_main, g_heads = aids.sml(main, heads, LABELS, 0.5, 0.7, 3.0)

    def loss(m=main, h=heads):
        labelled = losses.cross_entropy(m, LABELS)[0]
        labelled += 0.5 * sum(losses.cross_entropy(head, LABELS)[0] for head in h)
        taught = sum(
            aids.divergence(main, head, 3.0)[0] + aids.divergence(before, m, 3.0)[0]
            for head, before in zip(h, heads, strict=True)
        )
        return (1 - 0.7) / (1 + 2 * 0.5) * labelled + 0.7 / 4 * taught

    assert value == pytest.approx(loss())
    assert_gradient(g_main, loss, main)
    assert_gradient(g_heads[0], lambda z: loss(h=[z, heads[1]]), heads[0])
    assert_gradient(g_heads[1], lambda z: loss(h=[heads[0], z]), heads[1])


@pytest.mark.parametrize("loss", [aids.shortcuts, aids.summed_shortcuts])
def test_shortcuts_gradients(loss):
    main, branches = LOGITS[0], [LOGITS[1], LOGITS[2]]
    _, g_main, g_branches = loss(main, branches, LABELS, 0.6)
    assert_gradient(g_main, lambda z: loss(z, branches, LABELS, 0.6)[0], main)
    assert_gradient(
        g_branches[1], lambda z: loss(main, [branches[0], z], LABELS, 0.6)[0], branches[1]
    )
    assert loss(main, branches, LABELS, 0.0)[0] == losses.cross_entropy(main, LABELS)[0]


def test_the_branches_share_goes_from_1_to_0():
    for schedule in ("linear", "cosine"):
        shares = [aids.share(i / 4, schedule) for i in range(5)]
        assert shares[0] == 1
        assert shares[2] == pytest.approx(0.5)
        assert shares == sorted(shares, reverse=True)
    assert aids.share(1.0) == 0
