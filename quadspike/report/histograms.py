"""Membranes of a layer, small enough to stand in dozens."""

from __future__ import annotations

import math
from dataclasses import dataclass

from quadspike.report.looks import colour
from quadspike.report.markup import Html, tag
from quadspike.report.runs import Histogram
from quadspike.report.svg import Scale, svg


@dataclass(frozen=True)
class Membranes:
    """A histogram with the window in which a gradient passes, and the thresholds."""

    histogram: Histogram
    window: tuple[float, float]
    edges: tuple[float, ...]

    @property
    def reach(self) -> tuple[float, float]:
        """The part worth looking at: the window, and all but the rarest membranes."""
        whole = self.histogram.low, self.histogram.high
        low, width = self.histogram.low, self._width
        rare = 5e-4 * sum(self.histogram.counts)
        bins = [i for i, n in enumerate(self.histogram.counts) if n > rare]
        ends = [low + width * end for i in bins for end in (i, i + 1)]
        marks = [mark for mark in (*self.window, *self.edges) if math.isfinite(mark)]
        every = [min(max(end, low), whole[1]) for end in (*ends, *marks)]
        return (min(every), max(every)) if len(set(every)) > 1 else whole

    @property
    def _width(self) -> float:
        return (self.histogram.high - self.histogram.low) / len(self.histogram.counts)

    def bins(self, low: float, high: float) -> list[tuple[float, float, int]]:
        """Start, end and count of the bins that meet [low, high], cut to it."""
        start, width = self.histogram.low, self._width
        return [
            (max(left, low), min(left + width, high), count)
            for i, count in enumerate(self.histogram.counts)
            for left in [start + i * width]
            if left + width > low and left < high
        ]


def histogram_chart(label: str, seen: Membranes, run: int, view: tuple[float, float]) -> Html:
    """The counts as a silhouette, darker inside the window; a threshold is a dotted line."""
    width, height, bottom = 180.0, 88.0, 72.0
    x_axis = Scale(*view, 3, width - 3)
    most = max(seen.histogram.counts) or 1

    def silhouette(low: float, high: float, opacity: str) -> Html:
        bins = seen.bins(low, high)
        top = "".join(f"V{bottom - 66 * n / most:.1f}H{x_axis(end):.1f}" for _, end, n in bins)
        outline = f"M{x_axis(bins[0][0]):.1f} {bottom:g}{top}V{bottom:g}z" if bins else ""
        return tag("path", d=outline, fill=colour(run), fill_opacity=opacity)

    parts = [silhouette(*view, "0.35")]
    low, high = (min(max(end, view[0]), view[1]) for end in seen.window)
    if low < high:
        x, wide = x_axis(low), x_axis(high) - x_axis(low)
        parts.insert(0, tag("rect", class_="inside", x=x, y=2, width=wide, height=bottom - 2))
        parts.append(silhouette(low, high, "1"))
    parts.append(tag("line", class_="axis", x1=3, x2=width - 3, y1=bottom, y2=bottom))
    for edge in seen.edges:
        if view[0] <= edge <= view[1]:
            x = x_axis(edge)
            parts.append(tag("line", class_="threshold", x1=x, x2=x, y1=2, y2=bottom))
    parts += [
        tag(
            "text", f"{value:g}", x=x_axis(value), y=height - 3, class_="tiny", text_anchor="middle"
        )
        for value in x_axis.ticks(4)
        if 8 < x_axis(value) < width - 8
    ]
    return svg(label, width, height, parts)
