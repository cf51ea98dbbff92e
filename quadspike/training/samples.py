"""Random samples in the form of a data set's."""

from __future__ import annotations

import torch
from torch import Tensor

from quadspike.data.geometry import Geometry
from quadspike.training.recipe import Recipe


def random_batch(
    recipe: Recipe, geometry: Geometry, count: int, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Inputs and labels of a data set's shape."""
    frame = (count, *geometry.frame)
    shape = frame if geometry.static else (recipe.timesteps, *frame)
    dtype = torch.float64 if recipe.precision == "fp64" else torch.float32
    labels = torch.arange(count, device=device) % geometry.classes
    return torch.randn(shape, dtype=dtype, device=device), labels
