"""TET: every step answers for itself."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from quadspike.errors import QuadspikeError
from quadspike.losses.cross_entropy import check_logits


def tet(
    logits: Tensor,
    labels: Tensor,
    weight: float = 0.05,
    target: float = 1.0,
    label_smoothing: float = 0.0,
) -> Tensor:
    """Temporal efficient training: every step answers for itself.

    `(1 - weight) mean_t CE(O(t), y) + weight mean (O - target)^2`.
    """
    wide = check_logits(logits, labels)
    if not 0 <= weight <= 1:
        raise QuadspikeError(f"TET needs 0 <= weight <= 1, got {weight}")
    each = F.cross_entropy(
        wide.flatten(0, 1), labels.repeat(len(logits)), label_smoothing=label_smoothing
    )
    return (1 - weight) * each + weight * (wide - target).square().mean()
