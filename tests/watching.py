"""Observers of runs that tests share."""

from __future__ import annotations

import os
import signal
from collections import Counter
from typing import Any

from quadspike.training.observer import Moment, Observer
from quadspike.training.queue import Job, Watcher


class Epochs(Observer):
    """Counts the epochs that are over."""

    def __init__(self) -> None:
        self.over = 0

    def epoch(self, line: dict[str, Any]) -> None:
        self.over += 1


class Signal(Observer):
    """Has the run end by a SIGTERM: after that step of an epoch, without one after the epoch."""

    def __init__(self, epoch: int | None = None, step: int | None = None) -> None:
        self._epoch, self._step = epoch, step

    def moment(self, now: Moment) -> None:
        self._end(now.epoch, now.step)

    def epoch(self, metrics: dict[str, Any]) -> None:
        self._end(metrics["epoch"], None)

    def _end(self, epoch: int, step: int | None) -> None:
        if step == self._step and self._epoch in (None, epoch):
            os.kill(os.getpid(), signal.SIGTERM)


class Count(Watcher):
    """Counts the steps of every run of a queue."""

    def __init__(self) -> None:
        self.steps: Counter[str] = Counter()

    def start(self, job: Job[Any], number: int, total: int) -> None:
        self.name = job.title

    def moment(self, now: Moment) -> None:
        self.steps[self.name] += 1
