"""One look for every figure: restrained, colour-blind safe, readable in greyscale."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeVar

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.ticker import FormatStrFormatter, LogLocator, NullLocator

STYLE: dict[str, Any] = {
    "font.family": "STIXGeneral",
    "mathtext.fontset": "stix",
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.labelsize": 9.5,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "legend.fontsize": 8.0,
    "legend.frameon": False,
    "legend.handlelength": 2.2,
    "lines.linewidth": 1.2,
    "lines.markersize": 5.0,
    "hatch.linewidth": 0.4,
    "figure.constrained_layout.h_pad": 0.06,
    "figure.constrained_layout.w_pad": 0.06,
    "pdf.fonttype": 42,
    "svg.hashsalt": "quadspike",
}

WIDTH = 6.8
"""Inches: the text width of a two-column page."""

WIDE = 8.0
"""From this ratio of the largest to the smallest place on, an axis is logarithmic."""

INK = "#1a1a1a"
GREY = "#7a7a7a"
RED, BLUE, GREEN = "#c44e00", "#0b5c96", "#159a72"


class Look(NamedTuple):
    """How a region and what starts in it are drawn; no two differ in colour alone."""

    color: str
    tint: str
    hatch: str
    line: Any
    marker: str


REGION_LOOKS = {
    "red": Look(RED, "#fbdfcf", "////", (0, (4, 1.5)), "o"),
    "blue": Look(BLUE, "#bfd8ec", "....", "-", "s"),
    "green": Look(GREEN, "#eef8f4", "", (0, (1, 1)), "^"),
}
BEYOND = Look(INK, "#ffffff", "", (0, (5, 1.5, 1, 1.5)), "D")
"""A start past u_c, which runs away."""

# matplotlib's settings are one table for the whole process: one figure at a time may set them.
_settings = threading.RLock()

P = ParamSpec("P")
R = TypeVar("R")


def styled(draw: Callable[P, R]) -> Callable[P, R]:
    """Run `draw` under the house style, whatever the reader's own settings are."""

    @functools.wraps(draw)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        with _settings, matplotlib.style.context(STYLE, after_reset=True):
            return draw(*args, **kwargs)

    return run


def new_figure(height: float, width: float = WIDTH) -> Figure:
    """A figure of our width that needs no display."""
    return Figure(figsize=(width, height), layout="constrained")


def in_formula(value: float, digits: int = 3) -> str:
    r"""A number between dollar signs.

    >>> in_formula(0.25), in_formula(-6.25e-05)
    ('0.25', '-6.25 \\times 10^{-5}')
    """
    mantissa, _, power = f"{value:.{digits}g}".partition("e")
    return mantissa + (rf" \times 10^{{{int(power)}}}" if power else "")


def spread_out(ax: Axes, places: Sequence[float]) -> None:
    """Make the x axis logarithmic where these are far apart, with numbers as people write them."""
    if max(places) > WIDE * min(places) > 0:
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.xaxis.set_major_formatter(FormatStrFormatter("%g"))
        ax.xaxis.set_minor_locator(NullLocator())


def legend_below(figure: Figure, columns: int) -> Legend:
    """One legend for all axes under the figure, each label once."""
    entries: dict[str, Any] = {}
    for ax in figure.axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    return figure.legend(
        list(entries.values()), list(entries), loc="outside lower center", ncols=columns
    )


def name_points(ax: Axes, points: dict[str, float]) -> int:
    """Name points of the x axis above the frame; equal ones share a label, near ones stack.

    Returns how many lines of labels that took.
    """
    low, high = ax.get_xlim()
    shared: dict[float, list[str]] = {}
    for name, x in points.items():
        near = next((x_ for x_ in shared if abs(x_ - x) < 1e-6 * (high - low)), x)
        shared.setdefault(near, []).append(name)
    ends: list[float] = []  # where the last label of each line of labels ends
    for x, names in sorted(shared.items()):
        if not low <= x <= high:
            continue
        half_width = 0.03 + 0.045 * len(names)  # of a label, as a share of a half-page axis
        middle = (x - low) / (high - low)
        line = next((i for i, end in enumerate(ends) if middle - half_width > end), len(ends))
        ends[line : line + 1] = [middle + half_width]
        ax.annotate(
            f"${' = '.join(names)}$",
            xy=(x, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(0, 4 + 12 * line),
            textcoords="offset points",
            ha="center",
            va="bottom",
            # A label hides the pointers of those above it.
            zorder=20 - line,
            bbox={"boxstyle": "square,pad=0.05", "fc": "white", "ec": "none"},
            arrowprops={"arrowstyle": "-", "lw": 0.5, "color": GREY, "shrinkA": 0, "shrinkB": 0},
        )
    return len(ends)


def titles_above(titles: dict[Axes, str], lines: int) -> None:
    """Titles at one height that leave room for `lines` lines of named points."""
    for ax, title in titles.items():
        ax.set_title(title, pad=6 + 13 * lines)
