"""Methods side by side under one recipe."""

from quadspike.comparison.cells import judge
from quadspike.comparison.outcome import Outcome
from quadspike.comparison.picture import accuracy_against_energy
from quadspike.comparison.rows import Comparison
from quadspike.comparison.run import choose_methods, compare
from quadspike.training.queue import Watcher

__all__ = [
    "Comparison",
    "Outcome",
    "Watcher",
    "accuracy_against_energy",
    "choose_methods",
    "compare",
    "judge",
]
