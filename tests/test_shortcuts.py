"""Backpropagation shortcuts: the loss by hand, and how it fades."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from quadspike import QuadspikeError
from quadspike.aids.heads import Lesson, Place
from quadspike.aids.shortcuts import Shortcuts
from quadspike.losses import tet

LABELS = torch.tensor([0, 2, 1])
PLACES = [Place("a", 4), Place("b", 6)]
OUTPUTS = [torch.rand(2, 3, 4, 8, 8).round(), torch.rand(2, 3, 6, 4, 4).round()]


def lesson(logits, progress, predict):
    def loss(of):
        return tet(of, LABELS)

    return Lesson(logits, LABELS, OUTPUTS, loss, predict, torch.tensor(progress))


def branches(heads):
    """The logits of each head at every step, one image at a time."""
    return [
        torch.stack([torch.stack([head(x.mean((1, 2))) for x in step]) for step in output])
        for head, output in zip(heads.heads, OUTPUTS, strict=True)
    ]


@pytest.mark.parametrize(
    ("form", "weight"),
    [("linear", 0.75), ("cosine", 0.5 * (1 + math.cos(math.pi / 4))), ("fixed", 1.0)],
)
@pytest.mark.parametrize("last", [False, True])
def test_the_loss_by_hand(form, weight, last):
    """The heads are read out as the network is: by the mean over time, or the last step."""
    heads, logits = Shortcuts(PLACES, 5, form), torch.randn(2, 3, 5)

    def predict(of):
        return of[-1] if last else of.mean(0)

    expected = tet(logits, LABELS) + weight * sum(
        F.cross_entropy(predict(b), LABELS) for b in branches(heads)
    )
    torch.testing.assert_close(heads(lesson(logits, 0.25, predict)), expected)


def test_the_sum_is_one_loss_of_all_logits():
    heads, logits = Shortcuts(PLACES, 5, "sum"), torch.randn(2, 3, 5)
    expected = tet(logits + 0.75 * sum(branches(heads)), LABELS)
    torch.testing.assert_close(heads(lesson(logits, 0.25, lambda of: of.mean(0))), expected)


@pytest.mark.parametrize("form", ["linear", "cosine", "sum"])
def test_the_heads_say_fades_to_nothing(form):
    heads = Shortcuts(PLACES, 5, form)
    weights = [float(heads.weight(torch.tensor(p))) for p in (0.0, 0.3, 0.6, 1.0)]
    assert weights[0] == 1
    assert weights[-1] == pytest.approx(0, abs=1e-7)
    assert weights == sorted(weights, reverse=True)


def test_an_unknown_form_is_refused():
    with pytest.raises(QuadspikeError, match="'linear'"):
        Shortcuts(PLACES, 5, "linea")
