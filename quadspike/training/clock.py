"""How fast a run goes, and when to save."""

from __future__ import annotations

import time

from quadspike.training.workload import Workload


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
