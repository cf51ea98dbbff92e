"""What hand-written charts share: they are light, sharp on paper, and in the page's own colours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.ticker import MaxNLocator

from quadspike.report.markup import Html, join, tag

WIDTH = 380  # as wide as a phone, so that text stays as large as it is


@dataclass(frozen=True)
class Scale:
    """Values from `low` to `high`, drawn from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self, most: int, whole: bool = False) -> list[float]:
        """Round numbers within the range."""
        locator = MaxNLocator(most, steps=[1, 2, 2.5, 5, 10], integer=whole)
        slack = 1e-9 * (self.high - self.low)
        found = locator.tick_values(self.low, self.high)
        return [float(t) for t in found if self.low - slack <= t <= self.high + slack]


def short(name: str, most: int) -> str:
    """The name without its middle, if it is long.

    >>> short("layer1.0.shortcut.soma", 15)
    'layer1.…ut.soma'
    """
    half = (most - 1) // 2
    return name if len(name) <= most else f"{name[:half]}…{name[-(most - 1 - half) :]}"


def svg(label: str, width: float, height: float, parts: Sequence[Html]) -> Html:
    """A drawing of that size, described by `label` to who cannot see it."""
    return tag(
        "svg", join(parts), viewBox=f"0 0 {width:g} {height:g}", role="img", aria_label=label
    )
