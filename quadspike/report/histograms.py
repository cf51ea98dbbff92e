"""Membranes of a layer, small enough to stand in dozens."""

from __future__ import annotations

import math

from quadspike.report.looks import colour
from quadspike.report.markup import Html, tag
from quadspike.report.runs import Histogram, Layer
from quadspike.report.svg import Scale, svg
from quadspike.written import percent


def reach(layer: Layer) -> tuple[float, float]:
    """The part worth looking at: the window, and all but the rarest membranes."""
    low, high, counts = layer.histogram.low, layer.histogram.high, layer.histogram.counts
    rare = 5e-4 * sum(counts)
    ends = [end for left, right, n in _bins(layer.histogram) if n > rare for end in (left, right)]
    marks = [mark for mark in (*layer.window, *layer.thresholds) if math.isfinite(mark)]
    every = [min(max(end, low), high) for end in (*ends, *marks)]
    return (min(every), max(every)) if len(set(every)) > 1 else (low, high)


def _bins(histogram: Histogram) -> list[tuple[float, float, int]]:
    """Start, end and count of each."""
    start, width = histogram.low, (histogram.high - histogram.low) / len(histogram.counts)
    return [(start + i * width, start + (i + 1) * width, n) for i, n in enumerate(histogram.counts)]


def histogram_chart(layer: Layer, run: int, view: tuple[float, float]) -> Html:
    """The counts as a silhouette, darker inside the window; a threshold is a dotted line."""
    width, height, bottom = 180.0, 88.0, 72.0
    x_axis = Scale(*view, 3, width - 3)
    most = max(layer.histogram.counts) or 1

    def silhouette(low: float, high: float, opacity: str) -> Html:
        bins = [
            (max(left, low), min(right, high), n)
            for left, right, n in _bins(layer.histogram)
            if right > low and left < high
        ]
        top = "".join(f"V{bottom - 66 * n / most:.1f}H{x_axis(end):.1f}" for _, end, n in bins)
        outline = f"M{x_axis(bins[0][0]):.1f} {bottom:g}{top}V{bottom:g}z" if bins else ""
        return tag("path", d=outline, fill=colour(run), fill_opacity=opacity)

    parts = [silhouette(*view, "0.35")]
    low, high = (min(max(end, view[0]), view[1]) for end in layer.window)
    if low < high:
        x, wide = x_axis(low), x_axis(high) - x_axis(low)
        parts.insert(0, tag("rect", class_="inside", x=x, y=2, width=wide, height=bottom - 2))
        parts.append(silhouette(low, high, "1"))
    parts.append(tag("line", class_="axis", x1=3, x2=width - 3, y1=bottom, y2=bottom))
    for edge in layer.thresholds:
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
    label = (
        f"Membranes of {layer.layer}: {percent(layer.inside_window)} inside the window from "
        f"{layer.window[0]:.2f} to {layer.window[1]:.2f}"
    )
    return svg(label, width, height, parts)
