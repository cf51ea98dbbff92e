"""Surrogate modules: the published heads, what they see, and where they stand."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from quadspike import QuadspikeError, create_model
from quadspike.aids.heads import Lesson, Place, head_places
from quadspike.aids.sml import Quarters, SurrogateHead, SurrogateModules
from quadspike.losses import mean_cross_entropy

LABELS = torch.tensor([0, 2, 1])


def lesson(logits, outputs):
    def loss(of):
        return mean_cross_entropy(of, LABELS)

    return Lesson(logits, LABELS, outputs, loss, lambda of: of.mean(0), torch.tensor(0.0))


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
