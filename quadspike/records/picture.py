"""The picture of runs on record."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FormatStrFormatter, MaxNLocator, NullLocator

from quadspike.analysis.figures.style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    RED,
    WIDE,
    name_points,
    new_figure,
    styled,
)
from quadspike.records.series import Plot, Points, Series

_COLORS = (BLUE, RED, GREEN, INK, "#8a5fa8")
_MARKERS = "os^Dv"
_DASHES = ("-", (0, (4, 1.5)), (0, (1, 1)), (0, (5, 1.5, 1, 1.5)))
_LINE = 11.0
"""Points from one label to the next."""
_START = 1 / 3
"""Share of the epochs that may leave the frame below, where every line is steep."""
_FEW = 12
"""Points of a line up to which each is marked."""
_LONGEST = 60
"""Characters of a line of a label."""
_FAR = 0.8
"""Share of the axis before which a line's end is not pointed to."""
_NEAR = 0.05
"""Share of the axis that two ticks must be apart to have their labels side by side."""


@styled
def draw(plot: Plot) -> Figure:
    """A line for each series through the mean of its runs, named at its end."""
    ended = sorted(plot.series, key=lambda series: series.mean()[-1][1])
    labels = _labels(ended, values=plot.along == "epochs")
    room = _LINE * max(1 + 1.1 * label.count("\n") for label in labels)
    figure = new_figure(height=max(3.4, 1.0 + len(ended) * room / 72))
    FigureCanvasAgg(figure)
    ax = figure.subplots()
    ax.set(xlabel=plot.x, ylabel=plot.y)
    ax.grid(color="#e6e6e6", linewidth=0.5)
    keys = []
    for index, series in enumerate(ended):
        color = _COLORS[index % len(_COLORS)]
        dash = _DASHES[index // len(_COLORS) % len(_DASHES)]
        x, y = zip(*series.mean(), strict=True)
        few = "o" if len(x) <= _FEW else ""  # a line alone would seem to know what lies between
        marker = few if plot.along == "epochs" else _MARKERS[index % len(_MARKERS)]
        if plot.joined:
            ax.plot(x, y, color=color, ls=dash, marker=few, ms=3, clip_on=len(x) > 1, zorder=3)
        if plot.along == "epochs":
            low, high = zip(*((min(v), max(v)) for v in series.at().values()), strict=True)
            ax.fill_between(x, low, high, color=color, alpha=0.15, lw=0)
        else:
            x, y = zip(*(point for run in series.runs for point in run), strict=True)
            ax.scatter(x, y, s=20, c=color, marker=marker, ec="white", lw=0.4, zorder=4)
        ls = dash if plot.joined else "none"
        keys.append(Line2D([], [], color=color, ls=ls, marker=marker, ms=4, markevery=[1]))
    if plot.along == "epochs":
        _frame_epochs(ax, ended)
    else:
        _frame_field(ax, plot)
    if len(ended) > 1:
        _name_lines(ax, [series.mean()[-1] for series in ended], labels, keys, room)
    return figure


def _labels(ended: Sequence[Series], values: bool) -> list[str]:
    """The names, where values are meant with where the lines end."""
    found = []
    for series in ended:
        name = in_lines(series.label, _LONGEST)
        found.append(f"{series.mean()[-1][1]:.1f}  {name}" if values else name)
    return found


def in_lines(name: str, longest: int) -> str:
    """Broken where a line would be longer, between two fields wherever that can be.

    >>> in_lines("weight decay = 0.1, u2 -2", 12)
    'weight decay = 0.1,\\nu2 -2'
    """
    kept = name.replace(" ", "\u00a0").replace(",\u00a0", ", ")
    filled = textwrap.fill(kept, longest, break_on_hyphens=False, break_long_words=False)
    return filled.replace("\u00a0", " ")


def _frame_epochs(ax: Axes, ended: Sequence[Series]) -> None:
    shown, last = [], 0.0
    for series in ended:
        end = series.mean()[-1][0]
        for run in series.runs:
            start = min(_START * end, run[-2:][0][0])
            shown += [y for x, y in run if x >= start]
        last = max(last, end)
    margin = 0.05 * (max(shown) - min(shown)) or 1.0
    bottom = min(shown) - margin
    enters = min(x for series in ended for x, y in series.mean() if y >= bottom)
    ax.set(xlim=(enters - 1, last), ylim=(bottom, max(shown) + margin))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))


def _frame_field(ax: Axes, plot: Plot) -> None:
    ax.margins(x=0.08, y=0.08)
    if plot.along == "names":
        ax.set_xticks(list(plot.names.values()), list(plot.names))
        return
    places = sorted({x for series in plot.series for x in series.at()})
    if not plot.names and places[0] > 0 and places[-1] > WIDE * places[0]:
        ax.set_xscale("log")
        ax.xaxis.set_minor_locator(NullLocator())
    across = (ax.transData - ax.transAxes).transform([(x, 0) for x in places])[:, 0]
    if not plot.names and all(b - a > _NEAR for a, b in pairwise(across)):
        ax.xaxis.set_major_locator(FixedLocator(places))
        ax.xaxis.set_major_formatter(FormatStrFormatter("%g"))
    name_points(ax, {rf"\mathrm{{{name}}}": x for name, x in plot.names.items()})
    for x in set(plot.names.values()):
        ax.axvline(x, color=GREY, lw=0.5, ls=":", zorder=1)


def _name_lines(
    ax: Axes, ends: Points, labels: Sequence[str], keys: Sequence[Line2D], room: float
) -> None:
    """Every line's name right of the frame, level with its end as far as the names have room.

    A pointer joins the two. Where one would cross the frame, and pass for the course of its line,
    each name has a piece of its line before it instead.
    """
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()
    height = ax.get_window_extent().height * 72 / figure.dpi
    places = (ax.transData - ax.transAxes).transform(ends)
    levels = spaced(list(places[:, 1]), room / height)
    far = places[:, 0].min() < _FAR
    for end, label, level, key in zip(ends, labels, levels, keys, strict=True):
        pointer = {
            "arrowstyle": "-",
            "lw": 0.7,
            "ls": (0, (1, 2)),
            "color": key.get_color(),
            "relpos": (0, 0.5),
            "shrinkA": 1,
            "shrinkB": 2,
        }
        ax.annotate(
            label,
            end,
            xytext=(1.14 if far else 1.06, level),
            textcoords="axes fraction",
            va="center",
            fontsize=8,
            linespacing=1.0,
            color=key.get_color(),
            annotation_clip=False,
            arrowprops=None if far else pointer,
        )
        if far:
            key.set(data=((1.02, 1.07, 1.12), (level,) * 3), transform=ax.transAxes, clip_on=False)
            ax.add_artist(key)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")


def spaced(wanted: Sequence[float], gap: float) -> list[float]:
    """Ascending places in 0 to 1, as near as can be to those wanted but `gap` from each other.

    >>> [round(place, 2) for place in spaced([0.5, 0.5, 0.9], 0.1)]
    [0.45, 0.55, 0.9]
    """
    # Less a gap for each before it, places need only not descend: neighbours that would, meet
    # in their mean.
    groups: list[list[float]] = []
    for index, place in enumerate(wanted):
        groups.append([place - index * gap])
        while len(groups) > 1 and _mean(groups[-2]) > _mean(groups[-1]):
            groups[-2:] = [groups[-2] + groups[-1]]
    highest = 1 - (len(wanted) - 1) * gap
    level = [min(max(_mean(group), 0.0), highest) for group in groups for _ in group]
    return [place + index * gap for index, place in enumerate(level)]


def _mean(places: Sequence[float]) -> float:
    return sum(places) / len(places)
