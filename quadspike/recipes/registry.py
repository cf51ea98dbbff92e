"""Every recipe by name, with what the paper reports for it."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from quadspike.errors import check_name
from quadspike.recipes import cifar, cifar10dvs, digits, imagenet
from quadspike.training.field_values import check_values
from quadspike.training.recipe import Recipe, drafting

Figure = tuple[float, float | None]
"""Test accuracy in percent, mean and standard deviation; None where the paper ran once."""

OPEN = frozenset(
    {
        "name",
        "seed",
        "window",
        "tet_phi",
        "sync_norm",
        "split",
        "accumulate",
        "evaluate_every",
        "precision",
        "deterministic",
        "backend",
    }
)
"""Fields in which a recipe may differ from the paper's setting and still be it: what the paper
does not state, or what changes how a run is computed and not what it is."""


@dataclass(frozen=True)
class Entry:
    """One recipe: a line about it, how to make it, what the paper reports for QIF in it."""

    summary: str
    make: Callable[..., Recipe]
    figures: Mapping[tuple[int, str], Figure] = field(default_factory=dict)
    """By timesteps and loss."""


RECIPES: dict[str, Entry] = {
    "cifar10-resnet19": Entry(
        "the paper's CIFAR-10",
        cifar.cifar10_resnet19,
        {
            (2, "ce"): (96.44, 0.07),
            (4, "ce"): (96.49, 0.09),
            (2, "tet"): (96.70, 0.08),
            (4, "tet"): (96.86, 0.13),
        },
    ),
    "cifar100-resnet19": Entry(
        "the paper's CIFAR-100",
        cifar.cifar100_resnet19,
        {
            (2, "ce"): (79.68, 0.09),
            (4, "ce"): (80.15, 0.06),
            (2, "tet"): (80.31, 0.27),
            (4, "tet"): (80.62, 0.24),
        },
    ),
    "imagenet-resnet34": Entry(
        "the paper's ImageNet",
        imagenet.imagenet_resnet34,
        {(4, "ce"): (70.52, None), (4, "tet"): (70.38, None)},
    ),
    "cifar10-dvs-vggsnn": Entry(
        "the paper's CIFAR10-DVS; its split is unstated, here last100",
        cifar10dvs.cifar10dvs_vggsnn,
        {(10, "ce"): (83.00, 0.50), (10, "tet"): (81.57, 0.92)},
    ),
    "cifar10-dvs-resnet19": Entry(
        "the same in ResNet-19; here last100 too",
        cifar10dvs.cifar10dvs_resnet19,
        {(10, "ce"): (80.70, 0.10), (10, "tet"): (75.10, 1.50)},
    ),
    "cifar10-resnet19-strong": Entry(
        "CIFAR-10, more accurate than the paper's", cifar.cifar10_resnet19_strong
    ),
    "cifar10-speedrun": Entry("CIFAR-10 to 96 % in the least time", cifar.cifar10_speedrun),
    "cifar10-resnet19-short": Entry("CIFAR-10 in minutes on one GPU", cifar.cifar10_resnet19_short),
    "cifar100-resnet19-short": Entry(
        "CIFAR-100 in minutes on one GPU", cifar.cifar100_resnet19_short
    ),
    "cifar10-resnet8-short": Entry(
        "CIFAR-10 in a small network, for a small GPU", cifar.cifar10_resnet8_short
    ),
    "digits-cnn": Entry("the packaged digits, half a minute on a CPU", digits.digits_cnn),
    "digits-cnn-short": Entry("the same in seconds, to compare methods", digits.digits_cnn_short),
    "digits-mlp": Entry("the digits without convolutions: seconds", digits.digits_mlp),
    "digits-events-cnn": Entry(
        "the digits before a simulated event camera", digits.digits_events_cnn
    ),
}


def create_recipe(name: str, /, **overrides: Any) -> Recipe:
    """A recipe by name, with other fields than its own where given.

    >>> recipe = create_recipe("cifar10-resnet19", loss="tet", epochs=100)
    >>> recipe.loss, recipe.tet_lambda, recipe.epochs
    ('tet', 0.05, 100)
    """
    check_name("recipe", name, RECIPES)
    setting = {field: overrides.pop(field) for field in setting_of(name) if field in overrides}
    return _draft(name, **setting).but(**overrides)


def _draft(name: str, /, **setting: Any) -> Recipe:
    """What the recipe's function makes of a setting; not checked but for the setting's values."""
    make = RECIPES[name].make
    with drafting():
        check_values(dataclasses.replace(make(), **setting))
        return make(**setting)


def packaged_as(name: str, recipe: Recipe) -> Recipe:
    """The packaged recipe in the setting of another one, which may not allow it: not checked.

    >>> strong = create_recipe("cifar10-resnet19-strong", epochs=50, lr=0.2)
    >>> packaged_as("cifar10-resnet19-strong", strong).differences(strong)
    {'lr': (0.1, 0.2)}
    """
    return _draft(name, **{field: getattr(recipe, field) for field in setting_of(name)})


def vary(recipe: Recipe, **changes: Any) -> Recipe:
    """A recipe with other fields, and with what its packaged one lets follow from them.

    >>> vary(create_recipe("cifar10-resnet19-strong"), epochs=50, lr=0.2).graded_epochs
    15
    """
    if recipe.name not in RECIPES:
        return recipe.but(**changes)
    setting = {field: changes[field] for field in setting_of(recipe.name) if field in changes}
    with drafting():
        other = dataclasses.replace(recipe, **setting)
    before, after = (packaged_as(recipe.name, each) for each in (recipe, other))
    own = before.differences(recipe)
    follow = {k: new for k, (_, new) in before.differences(after).items() if k not in own}
    return recipe.but(**{**follow, **changes})


def setting_of(name: str) -> tuple[str, ...]:
    """The fields from which others of the recipe follow: what its function takes.

    >>> setting_of("cifar10-resnet19"), setting_of("cifar10-resnet19-strong")[3:]
    (('timesteps', 'neuron', 'loss'), ('epochs',))
    """
    return tuple(inspect.signature(RECIPES[name].make).parameters)


def paper_figure(recipe: Recipe) -> Figure | None:
    """The accuracy the paper reports, where the recipe is a setting of the paper's.

    >>> paper_figure(create_recipe("cifar10-resnet19", timesteps=4, seed=3, evaluate_every=5))
    (96.49, 0.09)
    >>> paper_figure(create_recipe("cifar10-resnet19", epochs=100)) is None
    True
    """
    setting = recipe.timesteps, recipe.loss
    for entry in RECIPES.values():
        if setting in entry.figures:
            theirs = entry.make(timesteps=recipe.timesteps, neuron="qif", loss=recipe.loss)
            if recipe.differences(theirs).keys() <= OPEN:
                return entry.figures[setting]
    return None
