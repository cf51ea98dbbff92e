"""Surrogate modules: the loss by hand, the published heads, and where they stand."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from quadspike import QuadspikeError, create_model
from quadspike.aids.heads import Lesson, Place, head_places
from quadspike.aids.sml import Quarters, SurrogateHead, SurrogateModules
from quadspike.losses import mean_cross_entropy

LABELS = torch.tensor([0, 2, 1])


def lesson(logits, outputs, labels=LABELS):
    def loss(of):
        return mean_cross_entropy(of, labels)

    return Lesson(logits, labels, outputs, loss, lambda of: of.mean(0), torch.tensor(0.0))


class Fixed(nn.Module):
    """A head that answers what it was told to."""

    def __init__(self, answer):
        super().__init__()
        self.answer = nn.Parameter(answer)

    def forward(self, x):
        return self.answer + 0 * x.mean()


def by_hand(q, heads, labels, alpha, share, tau):
    """With every target a constant, in plain sums."""

    def ce(scores):
        return sum(torch.logsumexp(s, 0) - s[y] for s, y in zip(scores, labels, strict=True)) / len(
            labels
        )

    def kl(target, pupil):
        p, r = torch.softmax(target.detach() / tau, 1), torch.softmax(pupil / tau, 1)
        return (p * (p / r).log()).sum() / len(labels)

    n = len(heads)
    labelled = ce(q) + alpha * sum(ce(h) for h in heads)
    both = sum(kl(q, h) + kl(h, q) for h in heads)
    return (1 - share) / (1 + n * alpha) * labelled + share / (2 * n) * both


@pytest.mark.parametrize(("alpha", "share", "tau"), [(0.5, 0.9, 3.0), (1.0, 1 / 3, 2.0)])
def test_the_loss_and_its_gradients_by_hand(alpha, share, tau):
    logits = torch.randn(4, 3, 5, dtype=torch.float64, requires_grad=True)
    answers = [torch.randn(3, 5, dtype=torch.float64) for _ in range(2)]
    places = [Place("a", 4), Place("b", 4)]
    heads = SurrogateModules(places, 5, alpha=alpha, share=share, temperature=tau, width=4)
    heads.heads = nn.ModuleList(map(Fixed, answers))
    found = heads(lesson(logits, [torch.zeros(4, 3, 4, 2, 2)] * 2))
    again = [a.clone().requires_grad_() for a in answers]
    expected = by_hand(logits.mean(0), again, LABELS, alpha, share, tau)
    torch.testing.assert_close(found, expected)
    mine = torch.autograd.grad(found, [logits, *(h.answer for h in heads.heads)])
    theirs = torch.autograd.grad(expected, [logits, *again])
    torch.testing.assert_close(mine, theirs)


def test_without_heads_say_it_is_the_network_s_loss():
    logits = torch.randn(2, 3, 5)
    heads = SurrogateModules([Place("a", 4)], 5, width=4, alpha=0.0, share=0.0)
    found = heads(lesson(logits, [torch.zeros(2, 3, 4, 8, 8)]))
    torch.testing.assert_close(found, mean_cross_entropy(logits, LABELS))


def test_heads_see_spikes_averaged_over_time_and_pass_a_gradient_on():
    heads = SurrogateModules([Place("a", 4)], 5, width=8)
    spikes = torch.rand(2, 3, 4, 8, 8).round()
    swapped = spikes.flip(0).requires_grad_()
    logits = torch.randn(2, 3, 5)
    loss = heads(lesson(logits, [swapped]))
    torch.testing.assert_close(loss, heads(lesson(logits, [spikes])))
    loss.backward()
    assert swapped.grad.abs().sum() > 0


def test_the_published_head():
    kinds = (nn.Conv2d, nn.Linear)
    shapes = [tuple(m.weight.shape) for m in SurrogateHead(512, 256, 100) if isinstance(m, kinds)]
    assert shapes == [
        (256, 512, 1, 1),
        (256, 256, 7, 7),
        (256, 256, 5, 5),
        (256, 256, 3, 3),
        (512, 1024),
        (100, 512),
    ]
    assert SurrogateHead(256, 256, 100)[0].kernel_size == (7, 7)  # as wide is not wider
    narrow = SurrogateHead(128, 256, 100)
    assert narrow[0].weight.shape == (256, 128, 7, 7)
    strides = [(m.stride, m.padding) for m in narrow if isinstance(m, nn.Conv2d)]
    assert strides == [((2, 2), (3, 3)), ((2, 2), (2, 2)), ((1, 1), (1, 1))]
    assert {m.negative_slope for m in narrow if isinstance(m, nn.LeakyReLU)} == {0.01}


@pytest.mark.parametrize("size", [(1, 1), (2, 3), (4, 4), (7, 5)])
def test_quarters_are_the_adaptive_average(size):
    x = torch.randn(2, 3, *size)
    torch.testing.assert_close(Quarters()(x), nn.AdaptiveAvgPool2d(2)(x).flatten(1))


@pytest.mark.parametrize(
    ("model", "places", "width"),
    [
        ("resnet19", [("layer1.2", 128), ("layer2.2", 256)], 512),
        ("resnet34", [("layer1.2", 64), ("layer2.3", 128), ("layer3.5", 256)], 512),
        ("resnet8", [("layer1.0", 16), ("layer2.0", 32)], 64),
        ("vggsnn", [("conv1b.soma", 128), ("conv2b.soma", 256), ("conv3b.soma", 512)], 512),
        ("cnn", [("conv1.soma", 32), ("conv2.soma", 64)], 128),
    ],
)
def test_heads_stand_after_every_stage_but_the_last(model, places, width):
    with torch.device("meta"):
        assert head_places(create_model(model)) == (places, width)


def test_a_network_without_stages_has_no_place_for_heads():
    with pytest.raises(QuadspikeError, match="stages"):
        head_places(create_model("mlp"))
