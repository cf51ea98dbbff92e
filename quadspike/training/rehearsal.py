"""Compiling what a run is about to do for the first time."""

from __future__ import annotations

from collections.abc import Callable

import torch

from quadspike.ops.rehearsal import rehearse
from quadspike.training.field_values import OWN
from quadspike.training.recipe import Recipe


def rehearse_on_gpu(work: Callable[[], object], recipe: Recipe, device: torch.device) -> None:
    """Compile the kernels of `work` side by side; elsewhere there are none.

    Not of a network of the user's own, whose parts may not bear numbers that nobody has written.
    """
    if device.type == "cuda" and recipe.model != OWN:
        rehearse(work)
