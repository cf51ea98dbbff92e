"""The command that makes the run of a record."""

from __future__ import annotations

import shlex

import pytest

from quadspike import QuadspikeError
from quadspike.recipes import RECIPES, create_recipe
from quadspike.records.command import train_command
from quadspike.training.recipe import Recipe
from tests.conftest import run_cli
from tests.record_cases import tiny

FIELDS = tuple(tiny().as_dict())
CASES = [
    *(create_recipe(name) for name in RECIPES),
    *(create_recipe(name, seed=5, epochs=407, warmup_epochs=0.0) for name in RECIPES),
    create_recipe("cifar10-resnet19", name="my run", loss="tet", sync_norm=False, clip=1.0),
    tiny(deterministic=True, neuron="lif", window=None),
]


@pytest.mark.parametrize("recipe", CASES, ids=lambda recipe: recipe.name)
@pytest.mark.parametrize("spelled_out", [(), FIELDS])
def test_the_command_makes_just_that_recipe(recipe: Recipe, spelled_out, monkeypatch):
    made = []
    monkeypatch.setattr("quadspike.cli.train._train", lambda recipe, options: made.append(recipe))
    program, *arguments = shlex.split(train_command(recipe, spelled_out=spelled_out))
    assert program == "quadspike"
    assert run_cli(*arguments) == 0
    assert made == [recipe]


def test_a_command_for_an_older_commit_names_the_fields_it_has_and_no_other():
    command = train_command(tiny(lr=0.3), spelled_out=("lr", "epochs", "timesteps", "neuron"))
    assert "--lr 0.3" in command
    assert "--neuron qif" in command
    assert "--ema" not in command


def test_workers_and_networks_of_ones_own_in_a_command():
    assert train_command(tiny(), 4).startswith("torchrun --nproc-per-node=4 -m quadspike train")
    with pytest.raises(QuadspikeError, match="your own network"):
        train_command(tiny(model="own"))
