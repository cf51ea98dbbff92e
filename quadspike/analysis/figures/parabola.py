"""The recurrence itself: what the next membrane is for every membrane."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from quadspike.analysis.dynamics import number, u_min
from quadspike.analysis.figures.maps import NEAR_TITLE, draw_whole_and_near, whole_view
from quadspike.analysis.figures.style import (
    INK,
    in_formula,
    legend_below,
    new_figure,
    styled,
    titles_above,
)
from quadspike.neurons import QIF


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
