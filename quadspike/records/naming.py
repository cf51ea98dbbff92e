"""What a run is called in a table, after its recipe."""

from __future__ import annotations

from quadspike.recipes import RECIPES
from quadspike.recipes.registry import packaged_as
from quadspike.records.command import changes
from quadspike.records.groups import NOT_A_SETTING, matters
from quadspike.records.runs import RunRecord
from quadspike.records.words import phrase
from quadspike.training.constants import PREFIX
from quadspike.training.recipe import Recipe

_SHOWN = NOT_A_SETTING | {"neuron", "loss", "dataset", "model", "timesteps", "epochs"}
"""Fields that are no setting, or have a column of their own."""


def run_name(record: RunRecord) -> str:
    """Its recipe's, with the weights it started from where they were not new."""
    name, first = recipe_name(record.recipe), record.first_weights
    return f"{name}, {phrase('init_from', first)}" if first else name


def recipe_name(recipe: Recipe) -> str:
    """One's own, or that of the packaged recipe it is, or its own with what is not as packaged.

    >>> from quadspike.recipes import create_recipe
    >>> recipe_name(create_recipe("cifar10-resnet19", weight_decay=2e-4))
    'cifar10-resnet19, weight decay = 0.0002'
    >>> recipe_name(create_recipe("cifar10-resnet19-strong", epochs=50, loss="tet"))
    'cifar10-resnet19-strong'
    >>> recipe_name(create_recipe("cifar10-resnet19", turn=0.01))
    'cifar10-resnet19'
    """
    if recipe.name not in RECIPES:
        return recipe.name
    for name in RECIPES:
        unlike = packaged_as(name, recipe).differences(recipe)
        if all(field in NOT_A_SETTING or not matters(field, recipe) for field in unlike):
            return name
    changed = changes(recipe.name, recipe).items()
    said = [phrase(k, new) for k, new in changed if _is_said(k) and matters(k, recipe)]
    return ", ".join([recipe.name, *said])


def _is_said(field: str) -> bool:
    return field not in _SHOWN and not field.startswith(PREFIX)
