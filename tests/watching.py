"""Observers of runs that tests share."""

from __future__ import annotations

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


class Count(Watcher):
    """Counts the steps of every run of a queue."""

    def __init__(self) -> None:
        self.steps: Counter[str] = Counter()

    def start(self, job: Job[Any], number: int, total: int) -> None:
        self.name = job.title

    def moment(self, now: Moment) -> None:
        self.steps[self.name] += 1
