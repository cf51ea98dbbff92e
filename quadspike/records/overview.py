"""The picture of the runs beside the paper: what accuracy they have, and how soon."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from statistics import fmean, stdev

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from quadspike.analysis.figures.style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    RED,
    legend_below,
    new_figure,
    spread_out,
    styled,
)
from quadspike.comparison.labels import Point, place_labels
from quadspike.errors import QuadspikeError
from quadspike.records.cells import seeds_of
from quadspike.records.groups import by_setting
from quadspike.records.naming import run_name
from quadspike.records.paper import reported
from quadspike.records.picture import in_lines
from quadspike.records.runs import RunRecord
from quadspike.training.recipe import Recipe
from quadspike.written import capitals, counted

_LOOKS = {"ce": ("o", BLUE), "tet": ("s", RED), "im": ("^", GREEN), "lts": ("D", INK)}
_WIDTH = 40
"""Characters of a line of a name."""


@styled
def accuracy_against_time(records: Sequence[RunRecord]) -> Figure:
    """Up and to the left is better; a panel for each network with its data and steps.

    The seeds of a setting are one point, its bar their sample standard deviation. Hollow: what
    the paper reports, with its own training.
    """
    if not records:
        raise QuadspikeError("no runs are on record outside of groups; name a group")
    settings = sorted(by_setting(records), key=lambda runs: _task(runs[0].recipe))
    panels = [list(rows) for _, rows in groupby(settings, lambda runs: _task(runs[0].recipe))]
    figure = new_figure(height=0.6 + 3.6 * len(panels))
    FigureCanvasAgg(figure)
    axes = list(figure.subplots(len(panels), squeeze=False).flat)
    named = [_draw(ax, rows) for ax, rows in zip(axes, panels, strict=True)]
    legend_below(figure, columns=4)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # laid out once, and labelled after that
    for ax, points in zip(axes, named, strict=True):
        place_labels(ax, points)
    return figure


def _task(recipe: Recipe) -> tuple[str, str, int]:
    return recipe.model, recipe.dataset, recipe.timesteps


def _draw(ax: Axes, rows: Sequence[Sequence[RunRecord]]) -> list[Point]:
    model, dataset, timesteps = _task(rows[0][0].recipe)
    devices = sorted({run.summary["device"] for runs in rows for run in runs})
    ax.set_title(f"{model} on {dataset}, T = {timesteps}")
    ax.set_ylabel("test accuracy, %")
    ours = [_point(runs) for runs in rows]
    theirs = {
        loss: Point("the paper", loss, 60 * found.hours, *found.accuracy)
        for loss in {point.kind for point in ours}
        if (found := reported(next(r[0].recipe for r in rows if r[0].recipe.loss == loss)))
    }
    points = [*ours, *theirs.values()]
    besides = "; the paper's on an A100" * bool(theirs)
    ax.set_xlabel(f"minutes of training on one {' or '.join(devices)}{besides}")
    for loss, (marker, color) in _LOOKS.items():
        for shown, fill, label in (
            ([point for point in ours if point.kind == loss], color, capitals(loss)),
            ([theirs[loss]] if loss in theirs else [], "white", f"the paper, {capitals(loss)}"),
        ):
            if shown:
                x, y = [point.x for point in shown], [point.y for point in shown]
                bars = [point.spread or 0.0 for point in shown]
                ax.errorbar(x, y, bars, fmt="none", elinewidth=0.8, ecolor=GREY, zorder=2)
                ax.plot(x, y, marker, mfc=fill, mec=color, ls="none", label=label, zorder=3)
    spread_out(ax, [point.x for point in points])
    ax.margins(0.14)
    ax.grid(color="#e6e6e6", linewidth=0.5)
    return points


def _point(runs: Sequence[RunRecord]) -> Point:
    recipe = runs[0].recipe
    epochs, seeds = counted(recipe.epochs, "epoch"), seeds_of(runs, "seed")
    accuracies = [100 * run.summary["accuracy"] for run in runs]
    return Point(
        in_lines(f"{run_name(runs[0])}, {recipe.neuron_words()}", _WIDTH) + f"\n{epochs}, {seeds}",
        recipe.loss,
        fmean(run.summary["seconds"] for run in runs) / 60,
        fmean(accuracies),
        stdev(accuracies) if len(accuracies) > 1 else None,
    )
