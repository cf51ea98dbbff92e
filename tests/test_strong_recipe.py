"""The recipe of the best record, and how it follows what it is given."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from quadspike.recipes import create_recipe
from quadspike.records.command import train_command
from quadspike.training.recipe import Recipe
from tests.conftest import run_cli

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    ("name", "loss", "unlike"),
    [("cifar10-qif-t2-memory", "ce", {"name"}), ("cifar10-qif-t2-tet", "tet", set())],
)
def test_the_strong_recipe_is_the_one_on_record(name, loss, unlike):
    run = json.loads((ROOT / "records/runs" / name / "recipe.json").read_text())["recipe"]
    recipe = create_recipe("cifar10-resnet19-strong", loss=loss)
    assert recipe.differences(Recipe.from_dict(run)).keys() == unlike


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("--neuron", "lif"), {"neuron": "lif"}),
        (("--timesteps", "1"), {"timesteps": 1, "full_epochs": 0, "train_timesteps": None}),
        (("--timesteps", "1", "--train-timesteps", "1"), {"timesteps": 1, "train_timesteps": 1}),
        (("--epochs", "50"), {"epochs": 50, "graded_epochs": 15, "full_epochs": 35}),
        (("--epochs", "2"), {"epochs": 2, "graded_epochs": 0, "full_epochs": 2}),
        (("--epochs", "50", "--timesteps", "1"), {"epochs": 50, "timesteps": 1}),
        (("--epochs", "50", "--graded-epochs", "20"), {"epochs": 50, "graded_epochs": 20}),
        (("--neuron-constants",), {"neuron_constants": {}}),
        (("--neuron-constants", "u2=-1"), {"neuron_constants": {"u2": -1.0}}),
    ],
)
def test_the_strong_recipe_follows_the_neuron_the_steps_and_the_epochs_it_is_given(
    flags, expected, monkeypatch
):
    made = []
    monkeypatch.setattr("quadspike.cli.train._train", lambda recipe, options: made.append(recipe))
    assert run_cli("train", "cifar10-resnet19-strong", *flags) == 0
    (recipe,) = made
    assert recipe == create_recipe("cifar10-resnet19-strong", **expected)
    assert recipe.neuron_constants == expected.get(
        "neuron_constants", {} if recipe.neuron == "lif" else {"u2": -2}
    )
    assert run_cli(*shlex.split(train_command(recipe))[1:]) == 0
    assert made[1:] == [recipe]


def test_what_is_given_counts_also_where_it_is_the_recipe_s_own_value(capsys):
    strong = ("train", "cifar10-resnet19-strong")
    assert run_cli(*strong, "--neuron", "lif", "--neuron-constants", "u2=-2") == 2
    assert "constant of neuron 'lif' 'u2'" in capsys.readouterr().err
    assert run_cli(*strong, "--timesteps", "1", "--full-epochs", "280") == 2
    assert "full_epochs=280 are for after epochs of fewer steps" in capsys.readouterr().err
