"""How good a network is."""

from __future__ import annotations

import copy
import dataclasses

import pytest
import torch

from quadspike import QuadspikeError
from quadspike.training import Recipe, score
from quadspike.training.datasets import make_data
from quadspike.training.distributed import Workers
from quadspike.training.judge import Judge
from quadspike.training.network import make_network

CPU = torch.device("cpu")


def test_a_score_is_that_of_the_model_in_evaluation_mode() -> None:
    recipe = Recipe("tiny", "digits", "mlp", batch_size=256, precision="bf16")
    data = make_data(recipe, None, CPU, Workers())
    model = make_network(recipe, data.geometry).train()
    before = copy.deepcopy(model.state_dict())
    seen: list[torch.dtype] = []
    model.classifier.register_forward_hook(lambda m, i, o: seen.append(o.dtype))
    found = score(model, data.test, recipe, CPU, Workers())
    assert set(seen) == {torch.bfloat16}
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert model.training
    right = 0
    model.eval()
    for inputs, labels in data.test.epoch():
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            right += int((model(inputs).float().mean(0).argmax(1) == labels).sum())
    assert found.accuracy == right / 359


def test_every_worker_needs_a_test_sample() -> None:
    recipe = Recipe("tiny", "digits", "mlp", batch_size=256)
    data = make_data(recipe, None, CPU, Workers())
    few = dataclasses.replace(data, sizes=dataclasses.replace(data.sizes, test=2))
    model = make_network(recipe, data.geometry)
    Judge(model, recipe, few, CPU, Workers(world=2), None)
    with pytest.raises(QuadspikeError, match="3 workers share 2 test samples"):
        Judge(model, recipe, few, CPU, Workers(world=3), None)
