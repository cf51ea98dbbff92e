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


class Interrupt(Observer):
    """Ends a run after so many steps, hard."""

    def __init__(self, after: int) -> None:
        self._after = after

    def saved(self, step: int) -> None:
        if step >= self._after:
            raise KeyboardInterrupt
