"""How much memory a step takes, from what autograd keeps for two samples."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor

from quadspike.data.geometry import Geometry
from quadspike.models import Network
from quadspike.norms import synchronize
from quadspike.training.network import count_parameters
from quadspike.training.recipe import Recipe
from quadspike.training.samples import random_batch
from quadspike.training.step import autocast
from quadspike.training.trainee import Trainee

GIB = 1 << 30
_SLACK = 1.15
"""Gradients under way and the libraries' workspaces, on top of what autograd keeps."""


@dataclass(frozen=True)
class Need:
    """Bytes that do not depend on the batch, and bytes a sample."""

    fixed: int
    per_sample: int

    def of(self, batch: int) -> int:
        """Bytes for `batch` samples at once."""
        return int(self.fixed + _SLACK * self.per_sample * batch)

    def largest_batch(self, available: int) -> int:
        """How many samples at once fit into that many bytes."""
        return max(0, int((available - self.fixed) / (_SLACK * self.per_sample)))


def peak_gib(device: torch.device) -> float | None:
    """The most memory held at once so far, in GiB; unknown on a CPU."""
    if device.type != "cuda":
        return None
    return round(torch.cuda.max_memory_allocated(device) / GIB, 3)


def is_out_of_memory(error: RuntimeError) -> bool:
    """Whether a device, or the host, had no more to give."""
    return isinstance(error, torch.OutOfMemoryError) or "DefaultCPUAllocator" in str(error)


def need(model: Network, recipe: Recipe, geometry: Geometry, device: torch.device) -> Need:
    """Of a copy, measured on two random samples shown as many steps and pixels as in any epoch."""
    trainee = Trainee(copy.deepcopy(model), recipe)
    trainee.manner = recipe.manner_in(recipe.epochs - 1)
    synchronize(trainee, False)  # other workers are elsewhere
    held = {p.untyped_storage().data_ptr() for p in trainee.parameters()}
    found: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in held:
            found[storage.data_ptr()] = storage.nbytes()
        return tensor

    inputs, labels = random_batch(recipe, geometry, 2, device)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        with autocast(recipe, device):
            loss, _ = trainee(inputs, labels, torch.zeros((), device=device))
        del loss
    slots = {"sgd": int(recipe.momentum > 0), "muon": 2, "adam": 2}[recipe.optimizer]
    size = 8 if recipe.precision == "fp64" else 4
    # weights, gradients, the optimizer's state and, of muon, directions; average
    copies = 2 + slots + (recipe.ema > 0)
    return Need(count_parameters(trainee) * size * copies, max(1, sum(found.values()) // 2))


def out_of_memory(recipe: Recipe, share: int, needed: Need, total: int | None) -> str:
    """What was too large, and what would fit."""
    steps = recipe.manner_in(recipe.epochs - 1).steps or recipe.timesteps
    text = (
        f"out of memory with a batch of {share} on one device at T = {steps}: "
        f"a step needs about {needed.of(share // recipe.accumulate) / GIB:.1f} GiB"
    )
    if total is None:
        return f"{text}; lower the batch, or use --accumulate"
    fits = needed.largest_batch(int(0.92 * total))
    if not fits:
        return f"{text} of {total / GIB:.1f}, and not even one sample fits; lower T"
    finer = range(recipe.accumulate + 1, share + 1)
    parts = next((n for n in finer if share % n == 0 and share // n <= fits), None)
    if parts is None:
        return f"{text} of {total / GIB:.1f}; lower --batch-size or T"
    return (
        f"{text} of {total / GIB:.1f}; about {fits} samples at once would fit: use --accumulate "
        f"{parts} to keep the batch, or lower --batch-size"
    )
