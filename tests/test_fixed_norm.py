from __future__ import annotations

import torch

from quadspike.models import load_model
from quadspike.norms import BatchNorm
from quadspike.recipes import create_recipe
from quadspike.training import train


def test_fixed_norms_stay_as_they_start_while_their_statistics_follow(tmp_path):
    recipe = create_recipe("digits-cnn-short", epochs=1, fixed_norm=True, initial_gain=0.7)
    train(recipe, out=tmp_path / "run", device="cpu")
    model = load_model(tmp_path / "run" / "last.safetensors")
    norms = [module for module in model.modules() if isinstance(module, BatchNorm)]
    assert norms
    for norm in norms:
        assert torch.equal(norm.weight, torch.full_like(norm.weight, 0.7))
        assert not norm.bias.any()
        assert norm.running_mean.any()
