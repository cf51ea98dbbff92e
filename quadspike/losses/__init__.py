"""From the logits of every step, `[T, B, classes]`, to a number."""

from quadspike.losses.cross_entropy import last_cross_entropy, mean_cross_entropy
from quadspike.losses.information import Level, im
from quadspike.losses.registry import LOSSES, LossEntry
from quadspike.losses.temporal import tet

__all__ = [
    "LOSSES",
    "Level",
    "LossEntry",
    "im",
    "last_cross_entropy",
    "mean_cross_entropy",
    "tet",
]
