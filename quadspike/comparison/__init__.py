"""Methods side by side under one recipe."""

from quadspike.comparison.cells import Cell, judge
from quadspike.comparison.jobs import Job, plan
from quadspike.comparison.outcome import Outcome
from quadspike.comparison.picture import accuracy_against_energy
from quadspike.comparison.rows import Comparison, Row
from quadspike.comparison.run import choose_methods, compare
from quadspike.training.queue import Watcher

__all__ = [
    "Cell",
    "Comparison",
    "Job",
    "Outcome",
    "Row",
    "Watcher",
    "accuracy_against_energy",
    "choose_methods",
    "compare",
    "judge",
    "plan",
]
