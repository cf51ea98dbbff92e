"""Every figure by name, and all of them into a folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from quadspike.analysis.dynamics import constants
from quadspike.analysis.figures.comparison import lif_against_qif
from quadspike.analysis.figures.membranes import membrane_density
from quadspike.analysis.figures.orbits import cobweb, recurrence
from quadspike.analysis.figures.portrait import phase_portrait
from quadspike.analysis.figures.saving import FORMATS, write_figure
from quadspike.analysis.figures.style import styled
from quadspike.analysis.figures.theorem import theorem_quality
from quadspike.errors import QuadspikeError, check_name
from quadspike.neurons import LIF, QIF
from quadspike.neurons.qif import Constants

FIGURES: dict[str, Callable[[QIF], Figure]] = {
    "recurrence": recurrence,
    "cobweb": cobweb,
    "phase_portrait": phase_portrait,
    "membrane_density": membrane_density,
    "lif_against_qif": lambda neuron: lif_against_qif(neuron, LIF(u_th=constants(neuron).u_th)),
    "theorem_quality": lambda neuron: _theorem_quality(constants(neuron)),
}


def _theorem_quality(p: Constants) -> Figure:
    """With the neuron on its plane, where it has a root at 0."""
    return theorem_quality(p.u_th, (p.a, p.u_sum) if p.u_prod == 0 else None)


_DPI = 300  # for print


def draw_all(
    folder: str | Path,
    neuron: QIF,
    formats: str | Sequence[str] = ("svg", "pdf", "png"),
    names: str | Sequence[str] | None = None,
) -> list[Path]:
    """Write the figures called `names`, or every one, in each format; returns the files."""
    endings = [check_name("figure format", ending, FORMATS) for ending in _listed(formats)]
    if not endings:
        raise QuadspikeError(f"name at least one figure format: {', '.join(FORMATS)}")
    chosen = FIGURES if names is None else _listed(names)
    chosen = [check_name("figure", name, FIGURES) for name in chosen]
    return [path for name in chosen for path in _draw(Path(folder), name, neuron, endings)]


@styled
def _draw(folder: Path, name: str, neuron: QIF, endings: Sequence[str]) -> list[Path]:
    figure = FIGURES[name](neuron)
    # Laid out once: each layout starts from the one before, so saving would move things.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    paths = [folder / f"{name}.{ending}" for ending in endings]
    for path in paths:
        write_figure(figure, path, _DPI)
    return paths


def _listed(given: str | Sequence[str]) -> Sequence[str]:
    return [given] if isinstance(given, str) else given
