"""Backpropagation shortcuts: heads, and how they are read out."""

from __future__ import annotations

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


def branches(heads):
    """The logits of each head at every step, one image at a time."""
    return [
        torch.stack([torch.stack([head(x.mean((1, 2))) for x in step]) for step in output])
        for head, output in zip(heads.heads, OUTPUTS, strict=True)
    ]


@pytest.mark.parametrize("last", [False, True])
def test_heads_are_read_out_as_the_network_is(last):
    """By the mean over time, or the last step."""
    heads, logits = Shortcuts(PLACES, 5), torch.randn(2, 3, 5)

    def predict(of):
        return of[-1] if last else of.mean(0)

    expected = tet(logits, LABELS) + 0.75 * sum(
        F.cross_entropy(predict(b), LABELS) for b in branches(heads)
    )
    done = torch.tensor(0.25)
    found = heads(Lesson(logits, LABELS, OUTPUTS, lambda z: tet(z, LABELS), predict, done))
    torch.testing.assert_close(found, expected)


def test_an_unknown_form_is_refused():
    with pytest.raises(QuadspikeError, match="'linear'"):
        Shortcuts(PLACES, 5, "linea")
