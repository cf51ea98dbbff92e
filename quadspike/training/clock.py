"""How fast a run goes, how long the rest takes, and when to save."""

from __future__ import annotations

import time
from itertools import accumulate

from quadspike.training.recipe import Recipe


class Clock:
    """The pace of this part of the run, from now on."""

    def __init__(self, save_every: float, step: int, workload: Workload) -> None:
        self._start = self._saved = time.monotonic()
        self._every = save_every
        self._first_step, self._workload = step, workload

    def save_due(self) -> bool:
        return time.monotonic() - self._saved >= self._every

    def saved(self) -> None:
        self._saved = time.monotonic()

    def rate(self, step: int) -> float:
        """Steps a second, evaluation included."""
        return (step - self._first_step) / max(1e-9, time.monotonic() - self._start)

    def left(self, step: int) -> float:
        """Seconds to the end of the run, if its work goes on at the pace of this part."""
        share = self._workload.share(step)
        done = share - self._workload.share(self._first_step)
        return (1 - share) * (time.monotonic() - self._start) / max(1e-9, done)


class Workload:
    """How much of a run's work is done, where epochs differ in it; for samples with this side."""

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
