"""From the logits of every step, `[T, B, classes]`, to a number."""

from quadspike.losses.cross_entropy import last_cross_entropy, mean_cross_entropy, tet
from quadspike.losses.information import Level, im
from quadspike.losses.registry import LOSSES, LossEntry

__all__ = [
    "LOSSES",
    "Level",
    "LossEntry",
    "im",
    "last_cross_entropy",
    "mean_cross_entropy",
    "tet",
]
