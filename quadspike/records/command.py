"""The command that makes a run."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping
from itertools import takewhile
from typing import Any

from quadspike.errors import QuadspikeError
from quadspike.recipes import RECIPES, create_recipe
from quadspike.recipes.registry import packaged_as, setting_of
from quadspike.training.constants import PREFIX, one_by_one
from quadspike.training.field_values import OWN
from quadspike.training.recipe import Recipe


def train_command(recipe: Recipe, workers: int = 1, spelled_out: Collection[str] = ()) -> str:
    """The command line that trains `recipe`, from a packaged one and what is different.

    `spelled_out` are fields to name in any case, for a commit whose packaged recipes may be others
    than ours: those that its recipes have.

    >>> train_command(create_recipe("digits-cnn", timesteps=2, seed=3))
    'quadspike train digits-cnn --timesteps 2 --seed 3'
    """
    if OWN in (recipe.model, recipe.dataset):
        raise QuadspikeError(
            "a run of your own network or data cannot be repeated by a command; only runs of "
            "packaged networks and known data sets can be records"
        )
    base = packaged(recipe)
    changed = changes(base, recipe)
    named = {field: value for field, value in recipe.as_dict().items() if field in spelled_out}
    changed |= {k: v for k, v in one_by_one(named).items() if not isinstance(v, bool)}
    words = [
        "quadspike",
        "train",
        base,
        *(word for f, v in changed.items() if not f.startswith(PREFIX) for word in _flag(f, v)),
    ]
    if any(field.startswith(PREFIX) for field in changed):
        numbers = (f"{name}={number!r}" for name, number in recipe.neuron_constants.items())
        words += ["--neuron-constants", *numbers]
    if workers > 1:
        words[:1] = ["torchrun", f"--nproc-per-node={workers}", "-m", "quadspike"]
    return shlex.join(words)


def check_command(command: str, recipe: Recipe) -> None:
    """Refuse a command that names another value of a field than the recipe has.

    Of what it leaves to a packaged recipe data and network alone: the rest of that may change.
    """
    given = shlex.split(command) if isinstance(command, str) else []
    if "train" not in given[:-1]:
        raise QuadspikeError(f"its command {command!r} is none of `quadspike train RECIPE`")
    base = create_recipe(given[given.index("train") + 1])
    fields = recipe.as_dict()
    left = {"seed": "0", "dataset": base.dataset, "model": base.model}
    for field, value in {**left, **_named(given, fields)}.items():
        if str(fields[field]) != value:
            raise QuadspikeError(f"its command says {field} {value}, its recipe {fields[field]}")


def _named(given: Iterable[str], fields: Mapping[str, Any]) -> dict[str, str]:
    """The fields that the words of a command name, with their values as text."""
    found = {}
    words = iter(given)
    for word in words:
        field = word.removeprefix("--").replace("-", "_")
        if field == "neuron_constants":
            pairs = takewhile(lambda each: "=" in each, words)  # then at most --init-from
            found[field] = str({n: float(number) for n, number in (p.split("=") for p in pairs)})
        elif isinstance(fields.get(field), bool):
            found[field] = "True"
        elif word.startswith("--no-"):
            found[field.removeprefix("no_")] = "False"
        elif word.startswith("--") and field in fields:
            found[field] = next(words, "")
    return found


def packaged(recipe: Recipe) -> str:
    """The packaged recipe of the same name, else the one with the fewest other fields."""

    def distance(name: str) -> tuple[bool, int]:
        return name != recipe.name, len(create_recipe(name).differences(recipe))

    return min(RECIPES, key=distance)


def changes(base: str, recipe: Recipe) -> dict[str, Any]:
    """The fields that make `recipe` of a packaged one, without those that follow from them.

    >>> changes("cifar10-resnet19-strong", create_recipe("cifar10-resnet19-strong", epochs=50))
    {'epochs': 50}
    """
    asked = create_recipe(base).differences(recipe).items()
    setting = {field: new for field, (_, new) in asked if field in setting_of(base)}
    rest = packaged_as(base, recipe).differences(recipe).items()
    return setting | {field: new for field, (_, new) in rest}


def _flag(field: str, value: Any) -> list[str]:
    option = field.replace("_", "-")
    if isinstance(value, bool):
        return [f"--{option}" if value else f"--no-{option}"]
    return [f"--{option}", str(value)]
