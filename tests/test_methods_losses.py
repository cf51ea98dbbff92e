"""Every loss and training aid against its NumPy statement, value and gradient."""

from __future__ import annotations

from functools import partial
from typing import get_args

import numpy as np
import pytest
import torch
from torch import nn

from quadspike import Taps
from quadspike import losses as package
from quadspike.aids.heads import Lesson, Place
from quadspike.aids.shortcuts import ShortcutForm, Shortcuts
from quadspike.aids.sml import SurrogateModules
from quadspike.call import Call
from quadspike.training import Recipe
from quadspike.training.trainee import make_loss
from tests.equations import aids, losses, surrogates
from tests.equations.recursion import backward, forward
from tests.method_cases import BATCH, CLOSE, QUARTER_LIF, STEPS, backends, drawn, layer

RNG = np.random.default_rng(12)
LOGITS, LABELS = RNG.normal(size=(4, 6, 5)), RNG.integers(0, 5, 6)
HEADS = RNG.normal(size=(2, 4, 6, 5))
OF_LOGITS = {
    "ce": (package.mean_cross_entropy, losses.ce),
    "tet": (
        partial(package.tet, weight=0.3, target=0.7),
        partial(losses.tet, weight=0.3, target=0.7),
    ),
    "tet, the paper's": (package.tet, losses.tet),
    "lts": (package.last_cross_entropy, losses.lts),
}


def test_every_loss_has_a_statement():
    assert {name.split(",")[0] for name in OF_LOGITS} | {"im"} == set(package.LOSSES)


def assert_value_and_gradients(loss, expected, *arrays):
    """`loss` of tensors is `expected[0]`, its gradients the rest."""
    given = [torch.tensor(array, requires_grad=True) for array in arrays]
    value = loss(*given)
    value.backward()
    assert value.item() == pytest.approx(expected[0], rel=1e-12)
    for tensor, grad in zip(given, expected[1:], strict=True):
        np.testing.assert_allclose(tensor.grad.numpy(), grad, **CLOSE)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("name", OF_LOGITS)
def test_a_loss_is_its_statement(name, smoothing):
    loss, statement = OF_LOGITS[name]
    labels = torch.tensor(LABELS)
    expected = statement(LOGITS, LABELS, smoothing=smoothing)
    assert_value_and_gradients(
        lambda z: loss(z, labels, label_smoothing=smoothing), expected, LOGITS
    )


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


@pytest.mark.parametrize("weight", [{}, {"weight": 0.3}])
def test_im_loss_is_its_statement(weight):
    membranes, targets = [RNG.normal(size=(4, 6, 3)), RNG.normal(size=(4, 6, 2, 2))], [0.5, 0.4]
    labels = torch.tensor(LABELS)

    def ours(logits, *layers):
        means = [u.flatten(1).mean(1) for u in layers]  # one a step, as taps give them
        return package.im(logits, labels, list(map(package.Level, means, targets)), **weight)

    value, g_logits, g_membranes = losses.im(LOGITS, LABELS, membranes, targets, **weight)
    assert_value_and_gradients(ours, (value, g_logits, *g_membranes), LOGITS, *membranes)


def test_a_recipe_s_im_loss_is_the_paper_s_by_default():
    recipe = Recipe("mine", "digits", "cnn", loss="im")
    membrane = RNG.normal(size=(4, 6, 3))
    level = package.Level(torch.tensor(membrane.mean((1, 2))), 0.5)
    found = make_loss(recipe)(torch.tensor(LOGITS), torch.tensor(LABELS), [level])
    assert found.item() == pytest.approx(losses.im(LOGITS, LABELS, [membrane], [0.5])[0], rel=1e-12)


# -- aids: heads that hand on the logits they are given ----------------------------------------

PLACES = [Place("one", 3), Place("other", 4)]


def lesson(logits, outputs, progress=0.0):
    labels = torch.tensor(LABELS)
    return Lesson(
        logits,
        labels,
        outputs,
        loss=lambda z: package.mean_cross_entropy(z, labels),
        predict=lambda z: z.mean(0),
        progress=torch.tensor(progress, dtype=torch.float64),
    )


def bare(heads):
    """`heads` without their layers: what they combine is under test, not what they compute."""
    heads.heads = nn.ModuleList(nn.Identity() for _ in PLACES)
    return heads


@pytest.mark.parametrize("numbers", [(), (1.0, 1 / 3, 2.0), (0.0, 0.0, 3.0)])
def test_sml_is_its_statement(numbers):
    options = dict(zip(("alpha", "share", "temperature"), numbers, strict=False))
    heads = bare(SurrogateModules(PLACES, classes=5, width=8, **options))
    value, g_main, g_heads = aids.sml(LOGITS.mean(0), list(HEADS.mean(1)), LABELS, *numbers)
    shared = [np.broadcast_to(grad / STEPS, LOGITS.shape) for grad in (g_main, *g_heads)]
    assert_value_and_gradients(
        lambda z, *outputs: heads(lesson(z, outputs)), (value, *shared), LOGITS, *HEADS
    )


@pytest.mark.parametrize("progress", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("form", get_args(ShortcutForm))
def test_shortcuts_are_their_reconstruction(form, progress):
    heads = bare(Shortcuts(PLACES, classes=5, form=form))
    share = aids.share(progress, form)
    statement = aids.summed_shortcuts if form == "sum" else aids.shortcuts
    value, g_main, g_heads = statement(LOGITS.mean(0), list(HEADS.mean(1)), LABELS, share)
    # A head reads the mean over space of [T, B, C, H, W]: here all 2 by 2 places are alike.
    shared = [np.broadcast_to(grad / STEPS, LOGITS.shape) for grad in (g_main, *g_heads)]

    def ours(z, *outputs):
        wide = [output[..., None, None].expand(*output.shape, 2, 2) for output in outputs]
        return heads(lesson(z, wide, progress))

    assert_value_and_gradients(ours, (value, *shared), LOGITS, *HEADS)
