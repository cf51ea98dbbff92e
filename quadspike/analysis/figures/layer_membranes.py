"""The membranes of every layer, of one network or of two over each other."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from quadspike.analysis.dynamics import Array
from quadspike.analysis.figures.maps import View
from quadspike.analysis.figures.style import BLUE, GREY, INK, RED, legend_below, new_figure, styled
from quadspike.errors import QuadspikeError
from quadspike.neurons import MembraneDensity, create_neuron

_LOOKS = ((BLUE, 0.42), (RED, 0.2))
"""Colour and opacity; the second lies over the first."""
_THEORY = (0, (4, 1.5))
_COLUMNS = 3
_SHORT = 60
"""Characters of a name that leave room for two columns."""
_LINE = 0.13
"""Inches of a line of text above a panel."""
_RARE = 2e-3
"""The share of a layer's membranes that may lie beyond either end of the axis."""

Found = dict[str, Any]


def check_overlay(networks: int) -> None:
    """Refuse more histograms in a panel than can be told apart."""
    if networks > len(_LOOKS):
        raise QuadspikeError(
            f"histograms of {networks} networks would hide each other: give one or two; the rest "
            "in figures of their own"
        )


@styled
def draw_membranes(found: Sequence[Found]) -> Figure:
    """A panel a soma: histogram, window, threshold, and the stationary density where there is one.

    The axis shows every window and all but the rarest membranes; panels have their own height.
    """
    check_overlay(len(found))
    names = _shared_names(found)
    columns = min(_COLUMNS, len(names))
    rows = -(-len(names) // columns)
    named = 2 if max(len(_name(network)) for network in found) <= _SHORT else 1
    height = 0.65 + 0.17 * (len(found) + 3) / named
    figure = new_figure(height + rows * (_LINE * len(found) + max(0.84, 2 / (rows + 1))))
    panels = figure.subplots(rows, columns, sharex=True, squeeze=False).flatten()
    panels[0].set_xlim(_view(found))
    for place, (ax, name) in enumerate(zip(panels, names, strict=False)):
        for index, (network, look) in enumerate(zip(found, _LOOKS, strict=False)):
            _draw_layer(ax, network, place, *look)
            _write_shares(ax, network["layers"][place], look[0], len(found) - 1 - index)
        ax.set_title(
            name.removesuffix(".soma"), fontsize=8.5, pad=3 + 72 * _LINE * (len(found) - 1)
        )
        ax.set(yticks=[], ylim=(0, None))
        ax.spines["left"].set_visible(False)
        if place + columns >= len(names):
            ax.tick_params(labelbottom=True)
            ax.set_xlabel("membrane $u$")
    for ax in panels[len(names) :]:
        ax.set_visible(False)
    _explain(panels[0], found)
    legend_below(figure, columns=named)
    return figure


def _name(network: Found) -> str:
    return f"{network['label']}, {network['weights']} weights"


def _shared_names(found: Sequence[Found]) -> list[str]:
    for network in found:
        if any("histogram" not in layer for layer in network["layers"]):
            raise QuadspikeError(
                f"{network['label']} comes without histograms: its file was written before "
                "`quadspike layers --out` kept them; look at the run itself"
            )
    names = [[str(layer["layer"]) for layer in network["layers"]] for network in found]
    if any(own != names[0] for own in names):
        raise QuadspikeError(
            "the two networks have different layers, which cannot share panels; draw each by itself"
        )
    return names[0]


def _view(found: Sequence[Found]) -> View:
    ends: list[float] = []
    for layer in (layer for network in found for layer in network["layers"]):
        edges, counts = _bins(layer)
        share = counts / _total(layer)
        below = layer["histogram"]["below"] / _total(layer) + np.cumsum(share)
        shown = edges[:-1][(below > _RARE) & (below - share < 1 - _RARE)]
        ends += [*shown[:1], *shown[-1:] + (edges[1] - edges[0])]
        ends += [edge for edge in (*layer["window"], *_fires_at(layer)) if np.isfinite(edge)]
    low, high = (float(bound(ends)) for bound in (min, max))
    margin = 0.03 * (high - low)
    return View(low - margin, high + margin)


def _bins(layer: Found) -> tuple[Array, Array]:
    seen = layer["histogram"]
    counts = np.array(seen["counts"], dtype=np.float64)
    return np.linspace(seen["low"], seen["high"], len(counts) + 1), counts


def _fires_at(layer: Found) -> list[float]:
    """Both thresholds of a ternary neuron; files of before they were kept have one."""
    found: list[float] = layer.get("fires_at", [layer["threshold"]])
    return found


def _total(layer: Found) -> int:
    seen = layer["histogram"]
    return max(1, int(sum(seen["counts"]) + seen["below"] + seen["above"]))


def _draw_layer(ax: Axes, network: Found, place: int, color: str, opacity: float) -> None:
    layer = network["layers"][place]
    edges, counts = _bins(layer)
    share = counts / _total(layer) / (edges[1] - edges[0])
    ax.axvspan(*np.clip(layer["window"], edges[0], edges[-1]), color=GREY, alpha=0.16, lw=0)
    for edge in _fires_at(layer):
        ax.axvline(edge, color=INK, lw=0.9, ls=":")
    ax.stairs(share, edges, fill=True, color=color, alpha=opacity, lw=0, label=_name(network))
    ax.stairs(share, edges, color=color, lw=0.6)
    if density := _density(json.dumps(layer["stationary"])):
        u = np.linspace(edges[0], edges[-1], 601)
        ax.plot(u, density.pdf(u), color=color, lw=0.9, ls=_THEORY)


def _write_shares(ax: Axes, layer: Found, color: str, line: int) -> None:
    """Above the frame, on a line of its own."""
    ax.annotate(
        f"{layer['inside_window']:.0%} inside, {layer['rate']:.1%} fire",
        xy=(1, 1),
        xycoords="axes fraction",
        xytext=(0, 3 + 72 * _LINE * line),
        textcoords="offset points",
        color=color,
        fontsize=7.5,
        ha="right",
        va="baseline",
    )


def _explain(ax: Axes, found: Sequence[Found]) -> None:
    """What is the same in every panel, for the legend."""
    ax.fill_between([], [], color=GREY, alpha=0.16, lw=0, label="surrogate's window")
    ax.plot([], [], color=INK, lw=0.9, ls=":", label="threshold")
    if any(layer["stationary"] for network in found for layer in network["layers"]):
        said = "stationary density, currents as training began"
        ax.plot([], [], color=GREY, lw=0.9, ls=_THEORY, label=said)


@lru_cache(maxsize=8)
def _density(given: str) -> MembraneDensity | None:
    known = json.loads(given)
    if known is None:
        return None
    try:
        return create_neuron(known["neuron"]).density(input_std=known["input_std"])
    except QuadspikeError:
        return None  # it hardly leaks: there is no exact density
