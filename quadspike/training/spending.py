"""What the time of a run went into."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


class Spending:
    """Seconds of a run by what they went into, from now on; to begin with, its start.

    >>> spent = Spending()
    >>> with spent.on("steps"), spent.on("capture"):  # the inner one's time is its own
    ...     pass
    >>> list(spent.seconds())
    ['start', 'steps', 'capture']
    """

    def __init__(self) -> None:
        self._since, self._what = time.monotonic(), "start"
        self._seconds: dict[str, float] = {}

    def add(self, earlier: Mapping[str, float]) -> None:
        """What an earlier part of the same run went into."""
        for what, seconds in earlier.items():
            self._seconds[what] = self._seconds.get(what, 0.0) + seconds

    @contextmanager
    def on(self, what: str) -> Iterator[None]:
        """What the block takes is for this. Work that a GPU still has is not waited for."""
        before = self._turn_to(what)
        try:
            yield
        finally:
            self._turn_to(before)

    def seconds(self) -> dict[str, float]:
        """Of all the time up to now."""
        self._turn_to(self._what)
        return dict(self._seconds)

    def _turn_to(self, what: str) -> str:
        now, before = time.monotonic(), self._what
        self.add({before: now - self._since})
        self._since, self._what = now, what
        return before
