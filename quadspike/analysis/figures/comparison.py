"""One input, two neurons: what the quadratic does that the leak does not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator
from numpy.typing import NDArray

from quadspike.analysis.dynamics import Array, constants, simulate, step, u_min
from quadspike.analysis.figures.style import GREY, INK, RED, legend_below, new_figure, styled
from quadspike.errors import QuadspikeError
from quadspike.neurons import LIF, QIF, Neuron

_QIF: dict[str, Any] = {"label": "QIF", "color": RED, "ls": "-", "marker": "o", "mfc": RED}
_LIF: dict[str, Any] = {"label": "LIF", "color": INK, "ls": "--", "marker": "s", "mfc": "white"}


@styled
def lif_against_qif(qif: QIF, lif: LIF) -> Figure:
    """Integration, sub-threshold oscillation, and a spike out of a negative voltage."""
    inputs = {
        "(a) Integration": integration_input(qif, lif),
        "(b) Sub-threshold oscillation": oscillation_input(qif),
        "(c) Negative voltage, then spike": rebound_input(qif),
    }
    figure = new_figure(height=4.0)
    rows = figure.subplots(3, 3, sharex="col", height_ratios=[1, 2.6, 0.55])
    for (title, x), column in zip(inputs.items(), rows.T, strict=True):
        _draw_input(column[0], title, x)
        _draw_membranes(column[1], qif, lif, x)
        _draw_spikes(column[2], qif, lif, x)
    if not sums_constant_input(qif):
        note = "no positive constant input below\n$u_{th}$ adds up to a spike of QIF"
        place = {"transform": rows[1, 0].transAxes, "ha": "center", "va": "bottom"}
        rows[1, 0].text(0.5, 0.14, note, fontsize=7.5, **place)
    for ax, label in zip(rows[:, 0], ("input $I$", "membrane $u$", ""), strict=True):
        ax.set_ylabel(label)
    figure.align_ylabels(rows[:, 0])
    legend_below(figure, columns=4)
    return figure


def integration_input(qif: QIF, lif: LIF, steps: int = 12) -> Array:
    """The least constant input that each neuron, alone too weak, sums to a spike.

    Where f(u) <= 0 up to the threshold, as at the paper's parameters, no constant input does
    that to the QIF: the input is then the least that the LIF sums.
    """
    levels = _levels(qif)
    qif_sums, lif_sums = (_fires_late(neuron, levels, within=3) for neuron in (qif, lif))
    shared = qif_sums & lif_sums
    chosen = levels[shared if shared.any() else lif_sums]
    return np.full(steps, chosen[0] if len(chosen) else levels[-1])


def sums_constant_input(qif: QIF) -> bool:
    """Whether some constant input below the threshold, too weak at first, makes it fire."""
    return bool(_fires_late(qif, _levels(qif), within=200).any())


def oscillation_input(qif: QIF, steps: int = 12) -> Array:
    """A steady input, inhibition as a rule, that moves rest to where f has slope -0.8.

    Without input the swing about rest is there too, but at the paper's parameters no larger
    than u_min. In the units w = a (u - vertex) the neuron is w -> w^2 - 0.56, with rest at
    -0.4; started at -0.65 it stays below 0, and so below every threshold that is allowed.
    """
    p = constants(qif)
    rest, start = (p.u_sum / 2 + w / p.a for w in (-0.4, -0.65))
    x = np.full(steps, rest - float(step(qif, rest)))
    x[:2] = 0.0
    x[2] = start - _silent_next(qif, x[:2])
    return x


def rebound_input(qif: QIF) -> Array:
    """A push to three quarters of the threshold; then the same push out of a negative voltage.

    f lifts that voltage half a threshold above where the first push began, so that the
    second one fires.
    """
    p = constants(qif)
    ground = max(_silent_next(qif, np.zeros(1)), 0.0)
    push = 0.75 * _threshold(qif) - ground
    lifted = max(float(step(qif, 0.0)), ground) + 0.5 * p.u_th
    negative = p.u_sum / 2 - math.sqrt((lifted - u_min(qif)) / p.a)
    before = np.array([0.0, push, 0.0, 0.0, 0.0])
    dip = negative - _silent_next(qif, before)
    return np.array([*before, dip, push, 0.0, 0.0, 0.0])


def _silent_next(neuron: Neuron, x: Array) -> float:
    """The membrane one step after `x` if no input comes."""
    return float(simulate(neuron, np.append(x, 0.0)).membranes[-1])


def _levels(qif: QIF) -> Array:
    return _threshold(qif) * np.linspace(0, 1, 401)[1:-1]


def _fires_late(neuron: Neuron, levels: Array, within: int) -> NDArray[np.bool_]:
    """For which constant inputs it fires within so many steps, but not at the first."""
    spikes = simulate(neuron, np.tile(levels, (within, 1))).spikes > 0
    return np.asarray(spikes.any(axis=0) & ~spikes[0])


def _threshold(qif: QIF) -> float:
    u_th = float(constants(qif).u_th)
    if u_th <= 0:
        raise QuadspikeError(
            f"comparing QIF with LIF needs a threshold above LIF's rest, u_th > 0; got {u_th:g}"
        )
    return u_th


def _draw_input(ax: Axes, title: str, x: Array) -> None:
    ax.set_title(title)
    ax.axhline(0, color=GREY, lw=0.5)
    ax.bar(_times(x), x, width=0.5, color="#a6a6a6", edgecolor=INK, lw=0.5)
    ax.margins(y=0.15)


def _draw_membranes(ax: Axes, qif: QIF, lif: LIF, x: Array) -> None:
    thresholds = {constants(qif).u_th, constants(lif).u_th}
    for u_th in sorted(thresholds):
        ax.axhline(u_th, color=INK, lw=0.9, ls=":", label="threshold $u_{th}$")
    ax.axhline(0, color=GREY, lw=0.5)
    for look, neuron in ((_LIF, lif), (_QIF, qif)):
        ax.plot(_times(x), simulate(neuron, x).membranes, ms=3.6, lw=1.1, **look)
    ax.margins(y=0.12)


def _draw_spikes(ax: Axes, qif: QIF, lif: LIF, x: Array) -> None:
    for row, (look, neuron) in enumerate(((_LIF, lif), (_QIF, qif))):
        fired = _times(x)[simulate(neuron, x).spikes > 0]
        ax.vlines(fired, row - 0.35, row + 0.35, color=look["color"], lw=2)
        ax.axhline(row, color=GREY, lw=0.3)
    ax.set(ylim=(-0.6, 1.6), yticks=[0, 1], yticklabels=["LIF", "QIF"], xlabel="step $t$")
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_xlim(0.3, len(x) + 0.7)
    ax.xaxis.set_major_locator(MultipleLocator(2))


def _times(x: Array) -> Array:
    return np.arange(1.0, len(x) + 1)
