"""The paper's printed figure beside a result, and whether the two can be compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from quadspike.methods import DATASETS, NETWORKS, Figure, Method
from quadspike.recipes import RECIPES
from quadspike.recipes.registry import OPEN
from quadspike.training.recipe import Recipe

Verdict = Literal["yes", "partly", "no"]


@dataclass(frozen=True)
class Cell:
    """A printed figure, and why it is (partly, not) of the same setting as the runs.

    `yes`: the paper's own setting, but for what the reasons say. `partly`: data, network and
    steps agree, but the figure is quoted from authors whose training and variant of the network
    are their own. `no`: not even that, or the method is a reconstruction.
    """

    figure: Figure
    verdict: Verdict
    reasons: tuple[str, ...]


def judge(method: Method, recipe: Recipe) -> Cell | None:
    """The printed figure nearest to what was run; None where the tables have none."""
    if not method.figures:
        return None
    order = list(DATASETS)

    def distance(figure: Figure) -> tuple[bool, int, bool, int]:
        return (
            figure.dataset != recipe.dataset,
            order.index(figure.dataset),
            NETWORKS[figure.network] != recipe.model,
            abs(figure.timesteps - recipe.timesteps),
        )

    figure = min(method.figures, key=distance)
    against = _against(figure, recipe)
    if method.status == "reconstruction":
        against = [method.differs, *against]
    if against:
        return Cell(figure, "no", tuple(against))
    quoted = method.neuron != "qif"
    return Cell(figure, "partly" if quoted else "yes", (method.differs,))


def _against(figure: Figure, recipe: Recipe) -> list[str]:
    """What makes the figure one of something else."""
    found = [figure.unlike] if figure.unlike else []
    if figure.dataset != recipe.dataset:
        printed = DATASETS[figure.dataset]
        return [*found, f"printed for {printed}, these runs are on {recipe.dataset}"]
    if NETWORKS[figure.network] != recipe.model:
        found.append(f"printed for {figure.network}, these runs are of {recipe.model}")
    if figure.timesteps != recipe.timesteps:
        found.append(f"printed at T = {figure.timesteps}, these runs are at {recipe.timesteps}")
    return found + _training(recipe)


def _training(recipe: Recipe) -> list[str]:
    """Where the common recipe is not the paper's for the same data and network."""
    own = {*OPEN, "neuron", "norm", "surrogate", "loss", "aid", "detach_reset", "tet_lambda"}
    for entry in RECIPES.values():
        theirs = entry.make()
        if entry.figures and (theirs.dataset, theirs.model) == (recipe.dataset, recipe.model):
            changed = entry.make(timesteps=recipe.timesteps).differences(recipe)
            listed = [f"{k} {b!r} for {a!r}" for k, (a, b) in changed.items() if k not in own]
            return [f"trained otherwise than in the paper: {', '.join(listed)}"] if listed else []
    return []
