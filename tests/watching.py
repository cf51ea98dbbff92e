"""Observers of runs that tests share."""

from __future__ import annotations

from typing import Any

from quadspike.training.observer import Observer


class Epochs(Observer):
    """Counts the epochs that are over."""

    def __init__(self) -> None:
        self.over = 0

    def epoch(self, line: dict[str, Any]) -> None:
        self.over += 1
