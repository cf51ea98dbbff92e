"""The synapses' weights in half precision, against autocast's own copies."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from quadspike import create_model
from quadspike.losses import mean_cross_entropy
from quadspike.models import Network
from quadspike.training.half import HalfWeights


def gradients(model: Network, run: nn.Module | HalfWeights, parts: int) -> dict[str, Tensor]:
    torch.manual_seed(1)
    for _ in range(parts):
        inputs, labels = torch.randn(4, 3, 8, 8), torch.randint(10, (4,))
        with torch.autocast("cpu", torch.bfloat16):
            mean_cross_entropy(run(inputs), labels).backward()
        if isinstance(run, HalfWeights):
            run.collect()
    grads = {name: p.grad for name, p in model.named_parameters()}
    return {name: grad for name, grad in grads.items() if grad is not None}


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("name", ["resnet8", "cnn", "mlp"])
def test_the_gradients_are_those_of_autocast_bit_for_bit(name: str, parts: int) -> None:
    model = create_model(name, seed=0, image_size=8)
    twin = copy.deepcopy(model)
    ours, theirs = gradients(model, HalfWeights(model), parts), gradients(twin, twin, parts)
    assert ours.keys() == theirs.keys() == dict(model.named_parameters()).keys()
    for key, grad in theirs.items():
        assert ours[key].dtype == torch.float32
        assert torch.equal(ours[key], grad), key


def test_the_copies_follow_the_weights() -> None:
    model = create_model("mlp", seed=0, image_size=8).eval()
    half = HalfWeights(model)
    inputs = torch.randn(4, 3, 8, 8)
    with torch.autocast("cpu", torch.bfloat16):
        before = half(inputs)
        with torch.no_grad():
            model.classifier.bias.add_(1)
        after, expected = half(inputs), model(inputs)
    assert not torch.equal(before, after)
    assert torch.equal(after, expected)


def test_what_does_not_learn_keeps_no_gradient() -> None:
    model = create_model("mlp", seed=0, image_size=8)
    model.hidden1.synapse.weight.requires_grad_(False)
    grads = gradients(model, HalfWeights(model), 1)
    assert "hidden1.synapse.weight" not in grads
