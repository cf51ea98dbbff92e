"""What a run tells whoever watches it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quadspike.training.finish import Result
    from quadspike.training.recipe import Recipe


@dataclass(frozen=True)
class Beginning:
    """What is about to be trained."""

    recipe: Recipe
    parameters: int
    device: str
    workers: int
    samples: int
    """Training samples."""
    steps_per_epoch: int
    done: int
    """Steps an earlier part of the run has made."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Moment:
    """Where the run stands within an epoch; means are over the epoch so far."""

    epoch: int
    step: int
    """Within the epoch, from 1."""
    total_step: int
    loss: float
    accuracy: float
    images_per_second: float
    seconds_left: float
    memory_gib: float | None


class Observer:
    """Does nothing at every occasion; override what you want to see."""

    def begin(self, what: Beginning) -> None:
        """The run starts or goes on."""

    def moment(self, now: Moment) -> None:
        """Some steps were made."""

    def epoch(self, metrics: dict[str, Any]) -> None:
        """An epoch has ended; `metrics` is its line in `metrics.jsonl`.

        Only where the epoch was evaluated does it tell of the test samples and the layers.
        """

    def warn(self, text: str) -> None:
        """Something is wrong with the network, in words."""

    def saved(self, step: int) -> None:
        """A checkpoint is on the disk."""

    def end(self, result: Result) -> None:
        """The run is over, or was stopped."""
