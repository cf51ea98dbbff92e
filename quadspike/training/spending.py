"""What the time of a run went into."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

STEPS = "steps"


class Spending:
    """Seconds by what they went into; what nobody claims is the steps'.

    >>> spent = Spending()
    >>> with spent.on("evaluation"), spent.on("capture"):  # the outer one claims it all
    ...     pass
    >>> list(spent.of(2.5)), round(sum(spent.of(2.5).values()), 3)
    (['evaluation', 'steps'], 2.5)
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._claimed = False

    def add(self, earlier: Mapping[str, float]) -> None:
        """What an earlier part of the same run went into, as `of` gave it."""
        for what, seconds in earlier.items():
            if what != STEPS:
                self.seconds[what] = self.seconds.get(what, 0.0) + seconds

    @contextmanager
    def on(self, what: str) -> Iterator[None]:
        """Claim the time until the block ends. Work that a GPU still has is not waited for."""
        if self._claimed:
            yield
            return
        self._claimed, start = True, time.monotonic()
        try:
            yield
        finally:
            self._claimed = False
            self.add({what: time.monotonic() - start})

    def of(self, total: float) -> dict[str, float]:
        """All of `total` seconds by what they went into."""
        steps = total - sum(self.seconds.values())
        return {what: round(s, 3) for what, s in {**self.seconds, STEPS: steps}.items()}
