"""How long a step of training takes, watched from outside."""

from __future__ import annotations

import time
from statistics import median

from quadspike.training.observer import Beginning, Moment, Observer
from quadspike.training.recipe import Recipe


class Pace(Observer):
    """The time between two looks at a run, over the steps between them.

    The batch's augmentation is part of it, evaluation and the first look are not; the median
    forgets what compiles or saves. Of epochs that train in other manners only those count that
    train as the last one does.
    """

    _recipe: Recipe

    def __init__(self) -> None:
        self._seconds: list[float] = []
        self._last: tuple[int, int, float] | None = None

    def begin(self, what: Beginning) -> None:
        self._recipe = what.recipe

    def moment(self, now: Moment) -> None:
        clock = time.perf_counter()
        if self._last is not None:
            epoch, step, before = self._last
            if epoch == now.epoch and self._as_the_last(epoch):
                self._seconds.append((clock - before) / (now.step - step))
        self._last = now.epoch, now.step, clock

    def _as_the_last(self, epoch: int) -> bool:
        manner_in = self._recipe.manner_in
        return manner_in(epoch - 1) == manner_in(self._recipe.epochs - 1)

    @property
    def step_ms(self) -> float | None:
        """The median; None where no two looks lay within an epoch."""
        return 1000 * median(self._seconds) if self._seconds else None
