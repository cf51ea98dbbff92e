"""How good a network is, on every sample of a source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from quadspike.data.loader import Batch
from quadspike.data.streaming import decoding
from quadspike.errors import QuadspikeError
from quadspike.models import Network
from quadspike.models.mode import evaluating
from quadspike.ops import compute_dtype
from quadspike.training.distributed import Workers
from quadspike.training.recipe import Recipe
from quadspike.training.sources import Source
from quadspike.training.step import autocast

Count = Callable[[Batch], Tensor]
"""A batch's summed loss, its right answers and its samples, `[3]` of float64; what it gives is
read before it is called again.
"""


@dataclass(frozen=True)
class Score:
    """Cross-entropy and accuracy of the network's readout, over `count` samples."""

    loss: float
    accuracy: float
    count: int


class EvaluationStoppedError(Exception):
    """An evaluation was not brought to its end."""


@torch.inference_mode()
def score(
    model: Network,
    source: Source,
    recipe: Recipe,
    device: torch.device,
    workers: Workers,
    count: Count | None = None,
    stopped: Callable[[], bool] | None = None,
) -> Score:
    """Evaluate on every sample once, whatever the number of workers.

    `count` is another way to run the model on a batch, such as a captured one. Where `stopped`
    says so before a batch, in whatever worker, `EvaluationStoppedError` is raised in all.
    """
    count = count or Counter(model, recipe, device)
    totals = torch.zeros(4, dtype=torch.float64, device=device)
    with evaluating(model), decoding():
        for batch in source.epoch():
            if stopped is not None and stopped():
                totals[3] = 1
                break
            totals[:3] += count(batch)
    loss, correct, seen, broken = workers.total(totals).tolist()
    if broken:
        raise EvaluationStoppedError
    if not seen:
        raise QuadspikeError("nothing to evaluate on: the source gave no batch")
    return Score(loss / seen, correct / seen, int(seen))


@dataclass(frozen=True)
class Counter:
    """Counts a batch as it comes."""

    model: Network
    recipe: Recipe
    device: torch.device

    def __call__(self, batch: Batch) -> Tensor:
        with autocast(self.recipe, self.device):
            logits = self.model(batch.inputs)
        scores = self.model.predict(logits.to(compute_dtype(logits)))
        loss = F.cross_entropy(scores, batch.labels, reduction="sum")
        right = (scores.argmax(1) == batch.labels).sum()
        return torch.stack([loss, right, right.new_full((), len(batch.labels))]).double()
