"""Some samples: random ones in the form of a data set's, or the first of a source."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from quadspike.data.geometry import Geometry
from quadspike.data.loader import Batch
from quadspike.training.recipe import Recipe
from quadspike.training.sources import Source


def random_batch(
    recipe: Recipe, geometry: Geometry, count: int, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Inputs and labels of a data set's shape."""
    frame = (count, *geometry.frame)
    shape = frame if geometry.static else (recipe.timesteps, *frame)
    dtype = torch.float64 if recipe.precision == "fp64" else torch.float32
    labels = torch.arange(count, device=device) % geometry.classes
    return torch.randn(shape, dtype=dtype, device=device), labels


def first_samples(source: Source, count: int) -> Iterator[Batch]:
    """The first `count` samples of an epoch, or all there are, in the source's own batches."""
    for inputs, labels in source.epoch():
        taken = min(count, len(labels))
        axis = inputs.ndim - 4  # clips come time first
        yield Batch(inputs.narrow(axis, 0, taken), labels[:taken])
        count -= taken
        if not count:
            return
