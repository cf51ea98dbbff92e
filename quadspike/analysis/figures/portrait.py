"""Where every membrane goes, as arrows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from quadspike.analysis.dynamics import Array, fixed_points, orbit
from quadspike.analysis.figures.maps import (
    View,
    draw_fixed_points,
    draw_regions,
    landmarks,
    whole_view,
)
from quadspike.analysis.figures.orbits import look_of
from quadspike.analysis.figures.style import (
    GREY,
    Look,
    legend_below,
    name_points,
    new_figure,
    styled,
    titles_above,
)
from quadspike.neurons import QIF

_STARTS, _STEPS = 24, 3
_DROP = 0.26  # from one arrow of an orbit to its next, in rows


@styled
def phase_portrait(neuron: QIF) -> Figure:
    """Arrows u(t) -> u(t+1) without input from many starts; height only keeps them apart."""
    view = whole_view(neuron)
    figure = new_figure(height=4.2)
    ax = figure.subplots()
    draw_regions(ax, neuron, view)
    for point in fixed_points(neuron):
        ax.axvline(point.u, color=GREY, lw=0.8, ls="-" if point.stable else (0, (4, 2)))
    for row, start in enumerate(np.linspace(view.low, view.high, _STARTS + 2)[1:-1]):
        look = look_of(neuron, float(start))
        _draw_arrows(ax, orbit(neuron, float(start), _STEPS), _STARTS - row, look, view)
    draw_fixed_points(ax, neuron, height=-0.4)
    ax.set(xlim=view, ylim=(-1.2, _STARTS + 0.8), yticks=[], xlabel="$u$")
    ax.spines["left"].set_visible(False)
    lines = name_points(ax, landmarks(neuron))
    titles_above({ax: f"The first {_STEPS} steps from each start, without input or reset"}, lines)
    legend_below(figure, columns=5)
    return figure


def _draw_arrows(ax: Axes, path: Array, height: float, look: Look, view: View) -> None:
    """An orbit as arrows, each a little lower; too short a step to see ends it."""
    ax.plot(path[0], height, look.marker, color=look.color, ms=4, mfc="white", mew=1.0, zorder=4)
    for t, (tail, head) in enumerate(pairwise(path)):
        if abs(head - tail) < 0.006 * view.span or not view.low <= tail <= view.high:
            return
        y = height - _DROP * t
        ax.annotate(
            "",
            xy=(float(np.clip(head, *view)), y),
            xytext=(tail, y),
            arrowprops={
                "arrowstyle": "-|>,head_width=0.14,head_length=0.3",
                "color": look.color,
                "lw": 1.1 if t == 0 else 0.6,
                "shrinkA": 2.2 if t == 0 else 0,
                "shrinkB": 0,
            },
            zorder=3,
        )
