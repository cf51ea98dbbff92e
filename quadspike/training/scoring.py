"""How good a network is, on every sample of a source."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from quadspike.data.loader import Batch
from quadspike.errors import QuadspikeError
from quadspike.models import Network
from quadspike.ops import compute_dtype
from quadspike.training.distributed import Workers
from quadspike.training.recipe import Recipe
from quadspike.training.sources import Source
from quadspike.training.step import autocast


@dataclass(frozen=True)
class Score:
    """Cross-entropy and accuracy of the network's readout, over `count` samples."""

    loss: float
    accuracy: float
    count: int


@torch.inference_mode()
def score(
    model: Network, source: Source, recipe: Recipe, device: torch.device, workers: Workers
) -> Score:
    """Evaluate on every sample once, whatever the number of workers."""
    totals = torch.zeros(3, dtype=torch.float64, device=device)
    was_training = model.training
    model.eval()
    try:
        for batch in source.epoch():
            totals += _batch_totals(model, batch, recipe, device)
    finally:
        model.train(was_training)
    loss, correct, count = workers.total(totals).tolist()
    if not count:
        raise QuadspikeError("nothing to evaluate on: the source gave no batch")
    return Score(loss / count, correct / count, int(count))


def _batch_totals(
    model: Network, batch: Batch, recipe: Recipe, device: torch.device
) -> torch.Tensor:
    with autocast(recipe, device):
        logits = model(batch.inputs)
    scores = model.predict(logits.to(compute_dtype(logits)))
    loss = F.cross_entropy(scores, batch.labels, reduction="sum")
    right = (scores.argmax(1) == batch.labels).sum()
    return torch.stack([loss, right, right.new_full((), len(batch.labels))]).double()
