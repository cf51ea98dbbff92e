"""Data that runs one after the other share."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path

import torch

from quadspike.training.datasets import make_data
from quadspike.training.distributed import Workers
from quadspike.training.fields_together import RECORDINGS
from quadspike.training.recipe import Recipe
from quadspike.training.sources import TrainingData

_FIELDS = (
    "dataset",
    "split",
    "validation",
    "batch_size",
    "accumulate",
    "seed",
    "cutout",
    "autoaugment",
    "image_transform",
    "frames_by",
    "frame_values",
    "frame_size",
    "event_transform",
)
"""What `make_data` reads whatever the data set; a test holds it to that."""


def data_key(recipe: Recipe) -> Hashable:
    """Equal for recipes of the same data, shown in the same order.

    >>> recipe = Recipe("mine", "digits", "mlp", timesteps=2)
    >>> data_key(recipe) == data_key(recipe.but(timesteps=4, lr=1))
    True
    >>> data_key(recipe) == data_key(recipe.but(validation=100))
    False
    """
    return (
        *(getattr(recipe, field) for field in _FIELDS),
        recipe.precision == "fp64",
        recipe.timesteps if recipe.dataset in RECORDINGS else None,
    )


class SharedData:
    """The data of one recipe after the other, loaded only where they are not those before."""

    def __init__(self, place: torch.device, root: str | Path | None) -> None:
        self._place, self._root = place, root
        self._held: tuple[Hashable, TrainingData] | None = None

    def of(self, recipe: Recipe) -> TrainingData:
        """The recipe's own."""
        key = data_key(recipe)
        if self._held is None or self._held[0] != key:
            self._held = None  # first: there may not be memory for both
            self._held = key, make_data(recipe, self._root, self._place, Workers())
        return self._held[1]
