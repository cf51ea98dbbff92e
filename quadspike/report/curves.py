"""Curves over epochs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from quadspike.report.looks import colour, marker
from quadspike.report.markup import Html, tag
from quadspike.report.svg import WIDTH, Scale, svg
from quadspike.written import significant

_HEIGHT = 230
_RIGHT, _TOP, _BOTTOM = 12, 8, 34
_LETTER = 6.6  # how wide a digit is, at most
_MOST_BANDS = 120
_MOST_DOTS = 60  # more would touch


@dataclass(frozen=True)
class Curve:
    """A line through points; `run` gives colour and mark, `color` another colour without one."""

    name: str
    points: Sequence[tuple[float, float]]
    run: int = 0
    dash: str | None = None
    color: str | None = None

    @property
    def drawn(self) -> list[tuple[float, float]]:
        """The points that are numbers."""
        return [(x, y) for x, y in self.points if math.isfinite(y)]

    @property
    def dotted(self) -> bool:
        """Whether it is a single point or skips epochs, as of a run evaluated now and then."""
        count, first, last = len(self.drawn), self.drawn[0][0], self.drawn[-1][0]
        return count == 1 or count <= min(_MOST_DOTS, last - first)


def dots(curves: Sequence[Curve]) -> str:
    """What dots on the curves are, where there are any."""
    return "Dots are the epochs with numbers." if any(c.drawn and c.dotted for c in curves) else ""


def line_chart(label: str, curves: Sequence[Curve], unit: str = "", zero: bool = False) -> Html:
    """Curves over epochs; where the pointer rests, the numbers of that epoch."""
    kept = [curve for curve in curves if curve.drawn]
    if not kept:
        return tag("p", "No numbers to draw.", class_="soft")
    ys = [y for curve in kept for _, y in curve.drawn]
    last = max(x for curve in kept for x, _ in curve.drawn)
    low, high = (min(0.0, *ys) if zero else min(ys)), max(ys)
    room = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    y_axis = Scale(low if zero else low - room, high + room, _HEIGHT - _BOTTOM, _TOP)
    heights = {value: f"{round(value, 12):g}{unit}" for value in y_axis.ticks(5)}
    left = 10 + _LETTER * max(map(len, heights.values()), default=0)
    x_axis = Scale(min(1, last - 1), last, left, WIDTH - _RIGHT)
    parts = [*_axes(x_axis, y_axis, heights)]
    parts += [drawn for curve in kept for drawn in _curve(curve, x_axis, y_axis)]
    if all(curve.color is None for curve in kept):
        ends = [(curve.run, *curve.drawn[-1]) for curve in kept]
        parts += [marker(run, x_axis(x), y_axis(y)) for run, x, y in ends]
        parts += _bands(kept, x_axis, unit)
    return svg(label, WIDTH, _HEIGHT, parts)


def _axes(x_axis: Scale, y_axis: Scale, heights: Mapping[float, str]) -> list[Html]:
    parts = []
    left, right, bottom = x_axis.start, x_axis.end, y_axis.start
    for value, shown in heights.items():
        y = y_axis(value)
        parts.append(tag("line", class_="gridline", x1=left, x2=right, y1=y, y2=y))
        parts.append(tag("text", shown, x=left - 6, y=y + 4, text_anchor="end"))
    parts.append(tag("line", class_="axis", x1=left, x2=right, y1=bottom, y2=bottom))
    parts += [
        tag("text", f"{value:g}", x=x_axis(value), y=bottom + 14, text_anchor="middle")
        for value in x_axis.ticks(7, whole=True)
        if value >= 1
    ]
    parts.append(tag("text", "epoch", x=(left + right) / 2, y=_HEIGHT - 4, text_anchor="middle"))
    return parts


def _curve(curve: Curve, x_axis: Scale, y_axis: Scale) -> list[Html]:
    """A line; where it skips epochs, dots, and between them only a hint of it."""
    places = [f"{x_axis(x):.1f},{y_axis(y):.1f}" for x, y in curve.drawn]
    title, stroke = tag("title", curve.name), curve.color or colour(curve.run)
    kind = "curve faint" if curve.dotted else "curve thin" if curve.color else "curve"
    line = tag(
        "polyline",
        title,
        class_=kind,
        points=" ".join(places),
        stroke=stroke,
        stroke_dasharray=curve.dash,
    )
    if not curve.dotted:
        return [line]
    d = "".join(f"M{place}h0" for place in places)  # a line to itself is a dot
    dots = tag("path", title, class_="curve dot", d=d, stroke=stroke)
    return [line, dots] if len(places) > 1 else [dots]


def _bands(curves: Sequence[Curve], x_axis: Scale, unit: str) -> list[Html]:
    """Invisible columns whose titles hold the numbers; a browser shows them by itself."""
    by_epoch: dict[float, list[str]] = {}
    for curve in curves:
        for x, y in curve.drawn:
            by_epoch.setdefault(x, []).append(f"{curve.name}: {significant(y, 4)}{unit}")
    every = math.ceil(len(by_epoch) / _MOST_BANDS)
    chosen = sorted(by_epoch)[::-1][::every]
    width = every * abs(x_axis(2) - x_axis(1))
    return [
        tag(
            "rect",
            tag("title", "\n".join([f"epoch {x:g}", *by_epoch[x]])),
            class_="band",
            x=max(x_axis(x) - width / 2, x_axis.start),
            y=_TOP,
            width=width if x < chosen[0] else width / 2,
            height=_HEIGHT - _TOP - _BOTTOM,
        )
        for x in chosen
    ]
