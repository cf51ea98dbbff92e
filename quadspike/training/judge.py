"""What is said of a network after an epoch: how good it is, and how its layers are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor

from quadspike.analysis.health import health
from quadspike.data.loader import Batch
from quadspike.errors import QuadspikeError
from quadspike.models import Network
from quadspike.training.distributed import Workers
from quadspike.training.recipe import Recipe
from quadspike.training.rehearsal import rehearse_on_gpu
from quadspike.training.reproducible import untuned
from quadspike.training.samples import first_samples
from quadspike.training.scoring import Count, score
from quadspike.training.sources import TrainingData
from quadspike.training.step import autocast
from quadspike.training.stop import Stop

LOOKED_AT = 128
"""Test samples to look into the network with."""


@dataclass
class Judge:
    """Scores every test sample and every one held out, and looks into the layers."""

    network: Network
    recipe: Recipe
    data: TrainingData
    device: torch.device
    workers: Workers
    count: Count
    _looked: bool = False

    def __post_init__(self) -> None:
        if (test := self.data.sizes.test) < self.workers.world:
            raise QuadspikeError(
                f"{self.workers.world} workers share {test} test samples, which leaves some of "
                "them without any; use fewer workers"
            )

    def __call__(self, stop: Stop) -> tuple[dict[str, Any], tuple[str, ...]]:
        """What an epoch's line says of it, and what ails the layers, in words.

        A signal raises `EvaluationStoppedError`; a time limit does not, since a run whose limit is
        shorter than an evaluation would never get past it.
        """
        line: dict[str, Any] = {}
        args = (self.recipe, self.device, self.workers, self.count, lambda: stop.signalled)
        for name, source in (("validation", self.data.validation), ("test", self.data.test)):
            if source is not None:
                found = score(self.network, source, *args)
                line |= {f"{name}_loss": found.loss, f"{name}_accuracy": found.accuracy}
        look = partial(health, self.network, self.sample)
        with autocast(self.recipe, self.device), untuned():
            if not self._looked:
                rehearse_on_gpu(look, self.recipe, self.device)
                self._looked = True
            seen = look()
        line["rates"] = {layer.layer: round(layer.rate, 5) for layer in seen.layers}
        line["window"] = {layer.layer: round(layer.window, 5) for layer in seen.layers}
        return line, seen.warnings

    @cached_property
    def sample(self) -> Tensor:
        """Test samples to look into the network with."""
        return Batch.joined(first_samples(self.data.test, LOOKED_AT)).inputs

    @property
    def chooses_on(self) -> str:
        """Whose accuracy makes an epoch the best."""
        return "test" if self.data.validation is None else "validation"
