"""Bars, a group a row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from quadspike.report.looks import colour
from quadspike.report.markup import Html, tag
from quadspike.report.svg import WIDTH, Scale, short, svg


@dataclass(frozen=True)
class Bar:
    """A bar of one run, of parts that add up, with its number and what a pointer reads."""

    run: int
    parts: tuple[float, ...]
    shown: str
    title: str

    @property
    def lengths(self) -> list[float]:
        """Of the parts; what is no number is not drawn."""
        return [part if math.isfinite(part) and part > 0 else 0.0 for part in self.parts]


def bar_chart(label: str, rows: Sequence[tuple[str, Sequence[Bar]]]) -> Html:
    """Bars to the right, a group a row; later parts of a bar are paler."""
    most = max((sum(bar.lengths) for _, bars in rows for bar in bars), default=0.0)
    left, right, thick, gap = 122.0, 52.0, 11.0, 6.0
    x_axis = Scale(0, most or 1.0, left, WIDTH - right)
    parts, y = [], 2.0
    for name, bars in rows:
        height = thick * max(1, len(bars))
        shown = tag("title", name), short(name, 21)
        middle = y + height / 2 + 4
        parts.append(tag("text", *shown, x=left - 6, y=middle, class_="name", text_anchor="end"))
        for i, bar in enumerate(bars):
            parts.append(_bar(bar, x_axis, y + i * thick, thick))
        y += height + gap
    parts.append(tag("line", class_="axis", x1=left, x2=left, y1=0, y2=y - gap + 2))
    return svg(label, WIDTH, y, parts)


def _bar(bar: Bar, x_axis: Scale, y: float, thick: float) -> Html:
    drawn, so_far = [tag("title", bar.title)], 0.0
    for i, part in enumerate(bar.lengths):
        start, end = x_axis(so_far), x_axis(so_far + part)
        drawn.append(
            tag(
                "rect",
                x=start,
                y=y,
                width=end - start,
                height=thick - 1,
                fill=colour(bar.run),
                opacity=None if i == 0 else "0.45",
            )
        )
        so_far += part
    number = tag("text", bar.shown, x=x_axis(so_far) + 4, y=y + thick - 2, class_="tiny")
    return tag("g", *drawn, number)
