"""What the paper reports for the data, network, steps and loss of a run."""

from __future__ import annotations

from typing import NamedTuple

from quadspike.analysis.energy.paper import paper_table
from quadspike.recipes import RECIPES
from quadspike.training.recipe import Recipe

_TIMES = {
    ("resnet19", "cifar10", 2): ("5 h", 5),
    ("resnet19", "cifar10", 4): ("11 h", 11),
    ("resnet19", "cifar100", 2): ("5 h", 5),
    ("resnet19", "cifar100", 4): ("11 h", 11),
    ("vggsnn", "cifar10-dvs", 10): ("1 h", 1),
    ("resnet19", "cifar10-dvs", 10): ("3 h", 3),
    ("resnet34", "imagenet", 4): ("6 days on four", 144),
}
"""By network, data and steps, on one A100 unless it says more; rounded as the paper rounds."""


class Reported(NamedTuple):
    """Accuracy in percent with its spread over seeds, time in words and in hours, energy."""

    accuracy: tuple[float, float | None]
    time: str
    hours: float
    energy_mj: float


def reported(recipe: Recipe) -> Reported | None:
    """The paper's figures, however either was trained.

    >>> from quadspike.recipes import create_recipe
    >>> reported(create_recipe("cifar10-speedrun", loss="tet"))
    Reported(accuracy=(96.7, 0.08), time='5 h', hours=5, energy_mj=0.633)
    """
    setting = recipe.model, recipe.dataset, recipe.timesteps
    energies = {(r.model, r.geometry, r.timesteps): float(r.energy_mj) for r in paper_table()}
    for entry in RECIPES.values():
        figure, theirs = entry.figures.get((recipe.timesteps, recipe.loss)), entry.make()
        same = (theirs.model, theirs.dataset) == (recipe.model, recipe.dataset)
        if figure and same and setting in _TIMES and setting in energies:
            return Reported(figure, *_TIMES[setting], energies[setting])
    return None
