"""Runs by names that tell them apart, and the words and marks around figures."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from quadspike.report.looks import badge
from quadspike.report.markup import Html, join, tag
from quadspike.report.runs import Layer, LayerEnergy, Run


@dataclass(frozen=True)
class Shown:
    """A run with its place among the others and a name that none of them has."""

    index: int
    label: str
    run: Run

    @property
    def named(self) -> Html:
        """Mark and name."""
        return join([badge(self.index), self.label])

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Its layers at the end of the run, if it has ended."""
        return self.run.record.layers if self.run.record else ()

    @property
    def energy(self) -> tuple[LayerEnergy, ...]:
        """What they cost, if it has ended and could be billed."""
        return self.run.record.energy if self.run.record else ()


def named(runs: Sequence[Run]) -> list[Shown]:
    """The folders' names; where two are the same, with that of the one around, then a number."""
    places = [Path(os.path.abspath(run.path)) for run in runs]
    labels = [place.name for place in places]
    for tell in (lambda i: places[i].parent.name, lambda i: f"no. {i + 1}"):
        often = Counter(labels)
        labels = [
            f"{label} ({tell(i)})" if often[label] > 1 else label for i, label in enumerate(labels)
        ]
    return [Shown(i, *pair) for i, pair in enumerate(zip(labels, runs, strict=True))]


def figure(title: str, caption: str, drawing: Html) -> Html:
    """A figure with its caption above."""
    words = tag("figcaption", tag("b", title), f" {caption}" if caption else None)
    return tag("figure", words, drawing)


def scrolling(label: str, content: Html, kind: str = "scroll") -> Html:
    """A box of its own for what is wider than a phone; focusable, so that keys can scroll it."""
    return tag("div", content, class_=kind, tabindex="0", role="region", aria_label=label)


def legend(runs: Sequence[Shown], *more: Html) -> Html | None:
    """Which mark is which run, if there are several, and what else there is to tell apart."""
    names = [tag("li", shown.named) for shown in runs] if len(runs) > 1 else []
    return tag("ul", *names, *more, class_="legend") if names or more else None


def key(dash: str | None, color: str = "currentColor") -> Html:
    """A piece of a line, for a legend."""
    line = tag(
        "line", x1=1, x2=29, y1=6, y2=6, stroke=color, stroke_width=2,
        stroke_linecap="round", stroke_dasharray=dash,
    )  # fmt: skip
    return tag("svg", line, class_="key", viewBox="0 0 30 12", aria_hidden="true")


def run_heading(shown: Shown, runs: Sequence[Shown]) -> Html | None:
    """Whose figures follow, if there are several runs."""
    return tag("h3", shown.named) if len(runs) > 1 else None


def bare(layer: str) -> str:
    """`conv1` for `conv1.soma`."""
    return layer.removesuffix(".soma")
