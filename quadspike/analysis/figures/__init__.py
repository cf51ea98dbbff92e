"""Figures of the neuron's dynamics and statistics, each a function that returns one.

>>> from quadspike import QIF
>>> figure = recurrence(QIF())
"""

from quadspike.analysis.figures.comparison import lif_against_qif
from quadspike.analysis.figures.gallery import FIGURES, draw_all
from quadspike.analysis.figures.membranes import membrane_density
from quadspike.analysis.figures.orbits import cobweb, recurrence
from quadspike.analysis.figures.portrait import phase_portrait
from quadspike.analysis.figures.saving import FORMATS
from quadspike.analysis.figures.theorem import theorem_quality

__all__ = [
    "FIGURES",
    "FORMATS",
    "cobweb",
    "draw_all",
    "lif_against_qif",
    "membrane_density",
    "phase_portrait",
    "recurrence",
    "theorem_quality",
]
