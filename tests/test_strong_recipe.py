"""The recipes of the best records, and how they follow what they are given."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from quadspike import QuadspikeError
from quadspike.recipes import create_recipe
from quadspike.records.command import train_command
from quadspike.sweeps import settings
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


@pytest.mark.parametrize("seed", [0, 1])
def test_the_fast_recipe_is_the_one_on_record(seed):
    saved = ROOT / "records/runs" / f"cifar10-speedrun-seed{seed}" / "recipe.json"
    run = Recipe.from_dict(json.loads(saved.read_text())["recipe"])
    assert run == create_recipe("cifar10-speedrun", seed=seed)


@pytest.mark.parametrize(
    ("given", "small", "graded", "full"),
    [
        ({}, (20, 51), 64, 32),
        ({"epochs": 1}, (None, 0), 0, 1),
        ({"epochs": 2}, (None, 0), 1, 1),
        ({"epochs": 5}, (20, 2), 2, 2),
        ({"epochs": 10, "timesteps": 1}, (20, 4), 5, 0),
        ({"epochs": 10, "timesteps": 4, "neuron": "lif"}, (20, 4), 5, 3),
    ],
)
def test_the_fast_recipe_divides_its_epochs(given, small, graded, full):
    recipe = create_recipe("cifar10-speedrun", **given)
    assert (recipe.small_size, recipe.small_epochs) == small
    assert (recipe.graded_epochs, recipe.full_epochs) == (graded, full)
    assert recipe.evaluate_every == recipe.epochs


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("--neuron", "lif"), {"neuron": "lif"}),
        (("--timesteps", "1"), {"timesteps": 1, "full_epochs": 0, "train_timesteps": None}),
        (("--timesteps", "1", "--train-timesteps", "1"), {"timesteps": 1, "train_timesteps": 1}),
        (("--epochs", "50"), {"epochs": 50, "graded_epochs": 15, "full_epochs": 35}),
        (("--epochs", "2"), {"epochs": 2, "graded_epochs": 0, "full_epochs": 2}),
        (
            ("--epochs", "50", "--timesteps", "1"),
            {"epochs": 50, "timesteps": 1, "graded_epochs": 15, "full_epochs": 0},
        ),
        (
            ("--neuron", "ternary", "--surrogate", "rectangle", "--graded-epochs", "0"),
            {"neuron": "ternary", "surrogate": "rectangle", "graded_epochs": 0},
        ),
        (
            ("--loss", "lts", "--train-timesteps", "None", "--full-epochs", "0"),
            {"loss": "lts", "train_timesteps": None, "full_epochs": 0},
        ),
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
        "neuron_constants", {"u2": -2} if recipe.neuron == "qif" else {}
    )
    words = shlex.split(train_command(recipe))[1:]
    assert run_cli(*words) == 0
    assert made[1:] == [recipe]
    if flags[:1] == ("--epochs",) and len(flags) == 2:
        assert words == ["train", "cifar10-resnet19-strong", *flags], "the rest follows"


@pytest.mark.parametrize(
    ("field", "value"), [("epochs", "50"), ("epochs", None), ("timesteps", "2")]
)
def test_a_wrong_value_is_refused_before_anything_follows_from_it(field, value):
    with pytest.raises(QuadspikeError, match=f"{field} must be a whole number >= 1, got {value!r}"):
        create_recipe("cifar10-resnet19-strong", **{field: value})


@pytest.mark.parametrize(
    "fields",
    [{"epochs": 50}, {"timesteps": 1}, {"neuron": "lif"}, {"epochs": 50, "graded_epochs": 10}],
)
def test_a_sweep_makes_what_train_makes(fields):
    common = {"lr": 0.2, "validation": 5000}
    base = create_recipe("cifar10-resnet19-strong", **common)
    (setting,) = settings(base, also=[fields])
    assert setting.recipe == create_recipe("cifar10-resnet19-strong", **common, **fields)
    own = create_recipe("cifar10-resnet19-strong", graded_epochs=7)
    assert settings(own, also=[{"epochs": 50}])[0].recipe.graded_epochs == 7


def test_what_is_given_counts_also_where_it_is_the_recipe_s_own_value(capsys):
    strong = ("train", "cifar10-resnet19-strong")
    assert run_cli(*strong, "--neuron", "lif", "--neuron-constants", "u2=-2") == 2
    assert "constant of neuron 'lif' 'u2'" in capsys.readouterr().err
    assert run_cli(*strong, "--timesteps", "1", "--full-epochs", "280") == 2
    assert "full_epochs=280 are for after epochs of fewer steps" in capsys.readouterr().err
