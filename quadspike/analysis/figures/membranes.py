"""The membrane under noise: exact, simulated, and as Theorem 1 has it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from quadspike.analysis.dynamics import Array, constants, simulate
from quadspike.analysis.figures.maps import View
from quadspike.analysis.figures.style import (
    BLUE,
    INK,
    RED,
    legend_below,
    name_points,
    new_figure,
    styled,
    titles_above,
)
from quadspike.errors import QuadspikeError
from quadspike.neurons import QIF, MembraneDensity
from quadspike.surrogates import Center, Window

_STEPS, _WARM_UP, _NEURONS = 220, 20, 2000


_BARS: dict[Center, tuple[float, dict[str, Any]]] = {
    "mean": (1.10, {"color": RED, "ls": "-", "marker": "o"}),
    "threshold": (1.22, {"color": INK, "ls": (0, (3, 1)), "marker": "D"}),
}
"""How high over the density each window is drawn, and how."""


@styled
def membrane_density(neuron: QIF) -> Figure:
    """The stationary density under input N(0, u_th^2), and what the two windows cover."""
    u_th = constants(neuron).u_th
    if u_th <= 0:
        raise QuadspikeError(
            f"the density of the membrane is for input N(0, u_th^2), so u_th must be > 0; "
            f"got u_th={u_th:g}"
        )
    density = neuron.density()
    view = _view(neuron, density)
    figure = new_figure(height=4.1)
    ax = figure.subplots()
    _draw_histogram(ax, neuron, view)
    top = _draw_densities(ax, neuron, density, view)
    ax.axvline(u_th, color=INK, lw=0.9, ls=":", label=f"threshold: {density.rate:.1%} fire")
    for center, (height, look) in _BARS.items():
        low, high = _window(neuron, center)
        share = f"window “{center}”: {density.share(low, high):.1%} inside"
        look = {"lw": 1.8, "ms": 5, "mfc": "white", "mew": 1.4, "label": share, **look}
        ax.plot([low, high], [height * top] * 2, **look)
        ax.vlines([low, high], 0, height * top, color=look["color"], lw=0.6, ls=(0, (2, 2)))
    ax.set(xlim=view, ylim=(0, 1.3 * top), xlabel="membrane $u$", ylabel="probability density")
    lines = name_points(ax, {"u_{th}": u_th})
    titles_above({ax: "The membrane under input $N(0, u_{th}^2)$"}, lines)
    legend_below(figure, columns=2)
    return figure


def _view(neuron: QIF, density: MembraneDensity) -> View:
    """Both windows, and nearly all membranes, but not a tail beyond four spreads."""
    reach = np.linspace(-4, 4, 161) * density.std + density.mean
    below = np.array([density.below(float(u)) for u in reach])
    bulk = reach[(below > 2e-3) & (below < 1 - 2e-3)]
    ends = [end for center in _BARS for end in _window(neuron, center)]
    margin = 0.1 * density.std
    return View(min(bulk[0], *ends) - margin, max(bulk[-1], *ends) + margin)


def _draw_histogram(ax: Axes, neuron: QIF, view: View) -> None:
    noise = np.random.default_rng(0).normal(0, constants(neuron).u_th, (_STEPS, _NEURONS))
    membranes = simulate(neuron, noise).membranes[_WARM_UP:].ravel()
    counts, edges = np.histogram(membranes, bins=80, range=view)
    share = counts / (len(membranes) * np.diff(edges))
    ax.stairs(
        share, edges, fill=True, color="#d9d9d9", label=f"simulated, {len(membranes):,} steps"
    )


def _draw_densities(ax: Axes, neuron: QIF, density: MembraneDensity, view: View) -> float:
    """The exact density and the Gaussian of Theorem 1; returns how high they go."""
    u = np.linspace(view.low, view.high, 601)
    exact, theorem = density.pdf(u), _gaussian(u, *map(float, neuron.voltage_statistics()))
    ax.plot(u, exact, color=INK, lw=1.6, label="exact, with reset")
    ax.plot(u, theorem, color=BLUE, lw=1.3, ls=(0, (5, 2)), label="Gaussian of Theorem 1")
    return float(max(exact.max(), theorem.max()))


def _window(neuron: QIF, center: Center) -> tuple[float, float]:
    low, high = Window(center).window(neuron)
    return float(low), float(high)


def _gaussian(u: Array, mean: float, std: float) -> Array:
    return np.asarray(np.exp(-0.5 * ((u - mean) / std) ** 2) / (std * math.sqrt(2 * math.pi)))
