"""What the figures of the recurrence share: its range, its regions, its fixed points."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes

from quadspike.analysis.dynamics import fixed_points, number, regions, step, u_min
from quadspike.analysis.figures.style import GREY, INK, REGION_LOOKS, name_points
from quadspike.neurons import QIF

# How a fixed point is filled, and with what.
_FILLS = {"stable": ("full", INK), "undecided": ("left", INK), "unstable": ("full", "white")}

NEAR_TITLE = "(b) The same around the least $f(u)$"


class View(NamedTuple):
    """A range of membranes to look at."""

    low: float
    high: float

    @property
    def span(self) -> float:
        return self.high - self.low


def whole_view(neuron: QIF) -> View:
    """Everything: both fixed points, the roots, the threshold, and some way beyond."""
    rest, critical = fixed_points(neuron)
    scale = critical.u - rest.u
    lowest = min(u_min(neuron), *landmarks(neuron).values())
    return View(lowest - 0.28 * scale, critical.u + 0.2 * scale)


def rest_view(neuron: QIF) -> View:
    """Around the resting point, the roots and the vertex, where f is small."""
    rest, critical = fixed_points(neuron)
    inner = [edge for region in regions(neuron) for edge in (region.low, region.high)]
    marks = [rest.u, number(neuron.vertex), *filter(np.isfinite, inner)]
    scale = critical.u - rest.u
    apart = max(marks) - min(marks)
    reach = apart if apart > 1e-3 * scale else 0.08 * scale
    middle = (max(marks) + min(marks)) / 2
    return View(middle - 1.1 * reach, middle + 1.1 * reach)


def draw_map(ax: Axes, neuron: QIF, view: View) -> int:
    """f, the identity, the regions, the fixed points; returns the lines of labels above."""
    draw_regions(ax, neuron, view)
    u = np.linspace(view.low, view.high, 801)
    ax.axhline(0, color=GREY, lw=0.5, zorder=1)
    ax.plot(u, u, color=GREY, lw=0.9, ls=(0, (6, 2)), label="$u(t+1) = u(t)$")
    ax.plot(u, step(neuron, u), color=INK, lw=1.6, label="$f(u) = a(u - u_1)(u - u_2)$")
    ax.axvline(number(neuron.u_th), color=INK, lw=0.9, ls=":", label="threshold $u_{th}$")
    draw_fixed_points(ax, neuron)
    ax.set_xlim(view)
    ax.set_xlabel("$u(t)$")
    ax.set_ylabel("$u(t+1)$")
    return name_points(ax, landmarks(neuron))


def draw_regions(ax: Axes, neuron: QIF, view: View) -> None:
    """The regions as bands, each with its own tint and hatching."""
    for region in regions(neuron):
        look = REGION_LOOKS[region.name]
        low, high = np.clip((region.low, region.high), *view)
        if low == high:
            continue
        ax.axvspan(
            low,
            high,
            facecolor=look.tint,
            edgecolor=look.color + "50",
            hatch=look.hatch,
            lw=0,
            zorder=0,
            label=f"{region.name} region",
        )


def draw_fixed_points(ax: Axes, neuron: QIF, height: float | None = None) -> None:
    """Filled if stable, open if unstable; on the identity, or at a height of the axis."""
    for point in fixed_points(neuron):
        fill, face = _FILLS[point.stability]
        ax.plot(
            point.u,
            point.u if height is None else height,
            "o",
            color=INK,
            ms=6,
            mew=1.1,
            fillstyle=fill,
            mfc=face,
            mfcalt="white",
            zorder=5,
            label=f"{point.stability} fixed point",
        )


def draw_whole_and_near(whole: Axes, near: Axes, neuron: QIF, view: View) -> int:
    """The map over `view` on square axes, and around rest; returns the lines of labels."""
    lines = max(draw_map(whole, neuron, view), draw_map(near, neuron, rest_view(neuron)))
    whole.set_ylim(view)
    _set_near_height(near, neuron, rest_view(neuron))
    return lines


def _set_near_height(ax: Axes, neuron: QIF, view: View) -> None:
    """As high as f goes in the view, with room below for a label."""
    u = np.linspace(view.low, view.high, 201)
    highest, lowest = float(step(neuron, u).max()), min(0.0, u_min(neuron))
    ax.set_ylim(lowest - 0.3 * (highest - lowest), highest)


def landmarks(neuron: QIF) -> dict[str, float]:
    """The membranes that have a name."""
    rest, critical = fixed_points(neuron)
    roots = {"u_1": number(neuron.u1), "u_2": number(neuron.u2)} if neuron.has_real_roots else {}
    return {"u_r": rest.u, **roots, "u_{th}": number(neuron.u_th), "u_c": critical.u}
