"""Gradients, windows, firing rates and memory by depth, of one network or of several."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from quadspike.analysis.figures.style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    RED,
    legend_below,
    new_figure,
    styled,
)

_LOOKS = ((BLUE, "o"), (RED, "s"), (GREEN, "^"), (INK, "D"), (GREY, "v"))
_SHORT = 45
"""Characters of a label that leave room for two columns."""


@styled
def draw_depth(found: Sequence[dict[str, Any]]) -> Figure:
    """The gradient's size at every soma's output; window and rate; how alike two steps are.

    The last is left out where every network has a single step. A line follows the main path;
    somas on shortcuts stand beside it.
    """
    names = [[layer["layer"] for layer in network["layers"]] for network in found]
    longest = max(names, key=len)
    columns = 2 if max(len(network["label"]) for network in found) <= _SHORT else 1
    alike = [[layer["temporal_correlation"] for layer in network["layers"]] for network in found]
    panels = 3 if any(value is not None for own in alike for value in own) else 2
    figure = new_figure(height=0.8 + 1.7 * panels + 0.17 * (len(found) + 2) / columns)
    axes = figure.subplots(panels, 1, sharex=True)
    above, below = axes[:2]
    for network, own, (color, marker) in zip(found, alike, cycle(_LOOKS), strict=False):
        gradient = [layer["gradient"]["output"] for layer in network["layers"]]
        look = {"color": color, "marker": marker}
        _draw(above, network, gradient, "-", label=network["label"], **look)
        for field, line in (("inside_window", "-"), ("rate", "--")):
            _draw(below, network, [layer[field] for layer in network["layers"]], line, **look)
        if panels > 2:
            _draw(axes[2], network, own, "-", **look)
    above.set_yscale("log")
    above.set_ylabel(r"RMS of $\partial L / \partial o$")
    below.set_ylabel("share of membranes")
    below.set_ylim(0, 1)
    if panels > 2:
        axes[2].set_ylabel("correlation of\nneighbouring steps")
    for line, meaning in (("-", "inside the window"), ("--", "firing")):
        below.plot([], [], color=GREY, ls=line, label=meaning)
    if all(own == longest[: len(own)] for own in names):
        ticks = [name.removesuffix(".soma") for name in longest]
        axes[-1].set_xticks(range(len(ticks)), ticks, rotation=90)
    else:
        places = range(0, len(longest), 1 + len(longest) // 12)
        axes[-1].set_xticks(places, [f"{place + 1}" for place in places])
        axes[-1].set_xlabel("soma, from the input on")
    for ax in axes:
        ax.grid(color="#e6e6e6", linewidth=0.5)
    legend_below(figure, columns)
    return figure


def _draw(
    ax: Axes, network: dict[str, Any], values: Sequence[float | None], line: str, **look: Any
) -> None:
    points = [
        (place, value, ".shortcut." in layer["layer"])
        for place, (layer, value) in enumerate(zip(network["layers"], values, strict=True))
        if value is not None
    ]
    main = [(place, value) for place, value, aside in points if not aside]
    asides = [(place, value) for place, value, aside in points if aside]
    hollow = "white" if line == "--" else look["color"]
    ax.plot(*_columns(main), ls=line, mfc=hollow, ms=3.6, **look)
    look.pop("label", None)
    ax.plot(*_columns(asides), ls="none", mfc=hollow, ms=3.6, alpha=0.55, **look)


def _columns(points: Sequence[tuple[int, float]]) -> tuple[list[int], list[float]]:
    return [place for place, _ in points], [value for _, value in points]
