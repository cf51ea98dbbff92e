"""Accuracy against energy, a labelled point a method."""

from __future__ import annotations

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from quadspike.analysis.figures.style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    RED,
    new_figure,
    spread_out,
    styled,
)
from quadspike.comparison.grid import common_unit
from quadspike.comparison.labels import Point, place_labels
from quadspike.comparison.rows import Comparison

_LOOKS = {
    "neuron": ("o", RED),
    "norm": ("s", BLUE),
    "surrogate": ("^", GREEN),
    "loss": ("D", "#8a5fa8"),
    "aid": ("v", INK),
}


@styled
def accuracy_against_energy(comparison: Comparison) -> Figure:
    """Up and to the left is better; a bar is the spread over seeds."""
    figure = new_figure(height=4.4)
    FigureCanvasAgg(figure)
    ax = figure.subplots()
    unit, many = common_unit(comparison)
    ax.set_xlabel(f"energy of one inference, {unit}")
    ax.set_ylabel("test accuracy, %")
    points = [
        Point(row.method.title, row.method.kind, many * row.energy_mj, row.accuracy, row.spread)
        for row in comparison.rows
        if row.accuracy is not None and row.energy_mj is not None
    ]
    if not points:
        return figure
    for kind, (marker, color) in _LOOKS.items():
        mine = [point for point in points if point.kind == kind]
        if mine:
            x, y = [point.x for point in mine], [point.y for point in mine]
            bars = [point.spread or 0.0 for point in mine]
            ax.errorbar(x, y, bars, fmt="none", elinewidth=0.7, ecolor=GREY, zorder=2)
            ax.plot(x, y, marker, color=color, label=kind, zorder=3)
    spread_out(ax, [point.x for point in points])
    ax.margins(0.14)
    ax.grid(color="#e6e6e6", linewidth=0.5)
    figure.legend(loc="outside lower center", ncols=len(_LOOKS), title="what the method changes")
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # laid out once, and labelled after that
    place_labels(ax, points)
    return figure
