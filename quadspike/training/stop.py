"""Why a run ends before its last epoch: a signal, or the time it was given."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from quadspike.errors import QuadspikeError

FINISHED, OUT_OF_TIME = 0, 75
"""Exit codes; one that ends by a signal has 128 + the signal's number."""


def check_minutes(stop_after: float | None) -> None:
    """Refuse a run that would end before it begins."""
    if stop_after is not None and not stop_after > 0:
        raise QuadspikeError(f"stop_after must be more than 0 minutes, got {stop_after:g}")


class Stop:
    """`code` turns from 0 to the run's exit code when it has to end."""

    def __init__(self, minutes: float | None = None) -> None:
        check_minutes(minutes)
        self._deadline = None if minutes is None else time.monotonic() + 60 * minutes
        self._signal = 0

    @property
    def code(self) -> int:
        if self._signal:
            return 128 + self._signal
        late = self._deadline is not None and time.monotonic() >= self._deadline
        return OUT_OF_TIME if late else FINISHED

    @property
    def signalled(self) -> bool:
        return bool(self._signal)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Take note of SIGTERM, SIGINT and SIGHUP instead of dying; a second SIGINT ends at once.

        Under `nohup` a terminal's end is none of the run's.
        """
        if threading.current_thread() is not threading.main_thread():
            yield  # Python gives signals to the main thread alone
            return
        numbers = [signal.SIGTERM, signal.SIGINT]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            numbers.append(signal.SIGHUP)
        before = {number: signal.signal(number, self._note) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and self._signal:
            raise KeyboardInterrupt
        self._signal = number


def describe(code: int) -> str:
    """An exit code in words."""
    if code == OUT_OF_TIME:
        return "its time was up"
    return f"{signal.Signals(code - 128).name} arrived"
