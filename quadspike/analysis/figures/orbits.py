"""The recurrence, what the next membrane is for every membrane, and orbits under it as cobwebs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from quadspike.analysis.dynamics import Array, fixed_points, number, orbit, regions, u_min
from quadspike.analysis.figures.maps import NEAR_TITLE, View, draw_whole_and_near, whole_view
from quadspike.analysis.figures.style import (
    BEYOND,
    INK,
    REGION_LOOKS,
    Look,
    in_formula,
    legend_below,
    new_figure,
    styled,
    titles_above,
)
from quadspike.neurons import QIF

_STEPS = 16


@styled
def recurrence(neuron: QIF) -> Figure:
    """f(u) = a (u - u1)(u - u2) with its regions and fixed points, whole and near rest."""
    figure = new_figure(height=4.0)
    whole, near = figure.subplots(1, 2)
    lines = draw_whole_and_near(whole, near, neuron, whole_view(neuron))
    titles_above({whole: "(a) The recurrence without input", near: NEAR_TITLE}, lines)
    _name_least(near, neuron)
    legend_below(figure, columns=4)
    return figure


@styled
def cobweb(neuron: QIF, starts: Sequence[float] | None = None) -> Figure:
    """Orbits without input and reset; by default from each region and from beyond u_c."""
    chosen = _one_a_region(neuron) if starts is None else [float(start) for start in starts]
    paths = [orbit(neuron, start, _STEPS) for start in chosen]
    view = whole_view(neuron)
    view = View(min([view.low, *chosen]), max([view.high, *chosen]))
    figure = new_figure(height=4.2)
    whole, near = figure.subplots(1, 2)
    lines = draw_whole_and_near(whole, near, neuron, view)
    titles_above({whole: "(a) Orbits without input or reset", near: NEAR_TITLE}, lines)
    for ax in (whole, near):
        for path in paths:
            _draw_orbit(ax, path[path < view.high + 10 * view.span], look_of(neuron, path[0]))
    legend_below(figure, columns=4)
    return figure


def _name_least(ax: Axes, neuron: QIF) -> None:
    vertex, least = number(neuron.vertex), u_min(neuron)
    ax.plot(vertex, least, "v", color=INK, ms=4.5)
    ax.annotate(
        rf"$u_\mathrm{{min}} = {in_formula(least)}$",
        xy=(vertex, least),
        xytext=(0, -7),
        textcoords="offset points",
        ha="center",
        va="top",
        bbox={"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none"},
    )


def look_of(neuron: QIF, start: float) -> Look:
    """By the region of the start; what lies beyond u_c has a look of its own."""
    if start > fixed_points(neuron)[1].u:
        return BEYOND
    return next(REGION_LOOKS[region.name] for region in regions(neuron) if start <= region.high)


def _one_a_region(neuron: QIF) -> list[float]:
    rest, critical = fixed_points(neuron)
    scale = critical.u - rest.u
    inner = regions(neuron)
    red, green = inner[0].high - 0.2 * scale, inner[-1].low
    blue = [(region.low + region.high) / 2 for region in inner[1:-1] if region.low < region.high]
    return [red, *blue, green + 0.8 * (critical.u - green), critical.u + 0.04 * scale]


def _draw_orbit(ax: Axes, path: Array, look: Look) -> None:
    """Up or down to f, across to the identity, and again."""
    corners = np.repeat(path, 2)
    ax.plot(
        corners[:-1],
        corners[1:],
        color=look.color,
        ls=look.line,
        lw=1.1,
        marker=look.marker,
        markevery=[0],
        ms=4.5,
        mfc="white",
        mew=1.1,
        zorder=4,
        label=f"from $u(0) = {in_formula(path[0])}$",
    )
