"""What a step costs against the number of steps and against the batch."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from quadspike.analysis.figures.style import BLUE, GREY, new_figure, styled
from quadspike.benchmark.record import Row, place_of
from quadspike.training.recipe import Recipe


@styled
def scaling_figure(rows: list[Row], recipe: Recipe) -> Figure:
    """Time and memory of the recipe's step; a dashed line is proportional to the last point."""
    figure = new_figure(height=4.2)
    axes = figure.subplots(2, 2, sharex="col", squeeze=False)
    sides = {"by timesteps": ("timesteps", "time steps $T$"), "by batch_size": ("batch", "batch")}
    for column, (name, (field, label)) in enumerate(sides.items()):
        wanted = {**place_of(recipe), "part": "scaling", "name": name}
        del wanted[field]
        mine = [row for row in rows if wanted.items() <= row.items() and "ms" in row]
        mine.sort(key=lambda row: row[field])
        for line, (value, unit) in enumerate((("ms", "ms a step"), ("peak_gib", "peak GiB"))):
            ax = axes[line, column]
            points = [(row[field], row[value]) for row in mine if row[value] is not None]
            ax.set_ylabel(unit)
            if points:
                x, y = zip(*points, strict=True)
                proportional = [y[-1] * place / x[-1] for place in x]
                ax.plot(x, proportional, "--", color=GREY, lw=0.8, label="proportional")
                ax.plot(x, y, "o-", color=BLUE, label="quadspike")
                ax.set_xscale("log", base=2)
                ax.set_xticks(x, [str(place) for place in x])
                ax.set_yscale("log")
                ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
                ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
                ax.yaxis.set_minor_formatter(NullFormatter())
        axes[1, column].set_xlabel(label)
    if axes[0, 0].lines:
        axes[0, 0].legend()
    return figure
