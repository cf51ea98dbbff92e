"""Where Theorem 1 holds well, over the plane of parameters."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure

from quadspike.analysis.dynamics import Array, TheoremError, theorem_error
from quadspike.analysis.figures.style import GREY, INK, in_formula, legend_below, new_figure, styled

_CELLS = 40
Point = tuple[float, float]
_PAPER = (0.25, 0.5)


@styled
def theorem_quality(u_th: float = 0.5, mark: Point | None = None) -> Figure:
    """Errors of Theorem 1's spread and mean over (a, u2), with u1 = 0; `mark` is a point of it."""
    # Errors depend on a u_th and u2 / u_th alone, so this plane shows the same for every u_th.
    error = theorem_error(
        a=np.linspace(0.5 / _CELLS, 0.5, _CELLS) / u_th,
        u2=np.linspace(-4, 1.5, _CELLS + 5) * u_th,
        u_th=u_th,
    )
    figure = new_figure(height=3.7)
    spread, mean = figure.subplots(1, 2, sharey=True)
    _draw_plane(
        spread,
        error,
        error.std,
        r"(a) Spread: $(\sigma_u - \sigma_\mathrm{exact})\,/\,\sigma_\mathrm{exact}$",
        mark,
    )
    image = _draw_plane(
        mean,
        error,
        error.mean,
        r"(b) Mean: $(\mu_u - \mu_\mathrm{exact})\,/\,\sigma_\mathrm{exact}$",
        mark,
    )
    spread.set_ylabel("$u_2$")
    bar = figure.colorbar(image, ax=[spread, mean], pad=0.02, format="{x:.0%}")
    bar.set_label(f"error of Theorem 1 at $u_{{th}} = {in_formula(u_th, 6)}$, $u_1 = 0$")
    bar.outline.set_linewidth(0.6)
    legend_below(figure, columns=3)
    return figure


def _draw_plane(
    ax: Axes, error: TheoremError, values: Array, title: str, mark: Point | None
) -> ScalarMappable:
    ax.set_title(title)
    ax.spines[:].set_visible(True)
    ax.set_xlabel("$a$")
    image = ax.pcolormesh(
        error.a,
        error.u2,
        _extended(values),
        cmap="YlGnBu",
        vmin=0,
        vmax=0.35,
        shading="gouraud",
        rasterized=True,
    )
    lines = ax.contour(
        error.a, error.u2, values, levels=[0.01, 0.05, 0.1, 0.2], colors=INK, linewidths=0.6
    )
    ax.clabel(lines, fmt=lambda level: f"{level:.0%}", fontsize=7)
    _hatch_forbidden(ax, error)
    _mark(ax, error, _PAPER, "the paper's", "*", 11)
    if mark is not None and mark != _PAPER:
        _mark(ax, error, mark, "this neuron's", "o", 6)
    ax.set(xlim=(error.a[0], error.a[-1]), ylim=(error.u2[0], error.u2[-1]))
    return image


def _mark(
    ax: Axes, error: TheoremError, point: Point, whose: str, symbol: str, size: float
) -> None:
    """Put a symbol at (a, u2), where that is on the plane and allowed."""
    a, u2 = point
    if error.a[0] <= a <= error.a[-1] and error.u2[0] <= u2 <= error.u_th:
        ax.plot(
            a,
            u2,
            symbol,
            ms=size,
            mfc="white",
            mec=INK,
            mew=0.9,
            clip_on=False,
            zorder=5,
            ls="none",
            label=f"{whose} $a = {in_formula(a, 6)}$, $u_2 = {in_formula(u2, 6)}$",
        )


def _extended(values: Array) -> Array:
    """Each column with its NaN replaced by the nearest value, so that colours reach the border."""
    filled = values.copy()
    for column in filled.T:
        known = np.flatnonzero(np.isfinite(column))
        column[:] = np.interp(np.arange(len(column)), known, column[known])
    return filled


def _hatch_forbidden(ax: Axes, error: TheoremError) -> None:
    """Cover what u2 <= u_th <= u_c = u2 + 1/a excludes, up to its exact border."""
    a = np.linspace(error.a[0], error.a[-1], 400)
    border = np.maximum(error.u_th - 1 / a, error.u2[0])
    for low, high, hatch, rule in (
        (error.u2[0], border, "////", "u_{th} > u_c"),
        (error.u_th, error.u2[-1], r"\\\\", "u_{th} < u_2"),
    ):
        ax.fill_between(
            a,
            low,
            high,
            facecolor="white",
            edgecolor=GREY,
            hatch=hatch,
            lw=0.0,
            zorder=3,
            label=f"not allowed: ${rule}$",
        )
