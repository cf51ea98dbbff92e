"""How long a run has taken, how fast it goes, and when to save."""

from __future__ import annotations

import time

from quadspike.training.workload import Workload


class Clock:
    """Time spent in all parts of the run since `called`, and the pace of this part from now on."""

    def __init__(
        self, called: float, before: float, save_every: float, step: int, workload: Workload
    ) -> None:
        self._called, self._start, self._before = called, time.monotonic(), before
        self._every, self._saved = save_every, time.monotonic()
        self._first_step, self._workload = step, workload

    def seconds(self) -> float:
        return self._before + time.monotonic() - self._called

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
