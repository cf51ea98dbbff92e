"""How much of a run's work is done, where its epochs differ in what they cost."""

from __future__ import annotations

from itertools import accumulate

from quadspike.training.recipe import Recipe


class Workload:
    """The work of every epoch of a recipe, for samples with this side."""

    def __init__(self, recipe: Recipe, side: int, per_epoch: int) -> None:
        manners = map(recipe.manner_in, range(recipe.epochs))
        works = (manner.work(recipe.timesteps, side) for manner in manners)
        self._before = [0.0, *accumulate(works)]
        self._per_epoch = per_epoch

    def share(self, step: int) -> float:
        """How much of the whole run is done after so many steps, from 0 to 1."""
        epoch, rest = divmod(step, self._per_epoch)
        first, last = self._before[epoch : epoch + 2] if rest else [self._before[epoch]] * 2
        return (first + (last - first) * rest / self._per_epoch) / self._before[-1]
