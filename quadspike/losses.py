"""From the logits of every step, `[T, B, classes]`, to a number."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from quadspike.errors import QuadspikeError
from quadspike.ops import compute_dtype


def mean_cross_entropy(logits: Tensor, labels: Tensor, label_smoothing: float = 0.0) -> Tensor:
    """Cross-entropy of the logits' mean over time.

    >>> import torch
    >>> round(float(mean_cross_entropy(torch.zeros(2, 3, 10), torch.tensor([0, 1, 2]))), 4)
    2.3026
    """
    _check(logits, labels)
    mean = logits.to(compute_dtype(logits)).mean(0)
    return F.cross_entropy(mean, labels, label_smoothing=label_smoothing)


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
    _check(logits, labels)
    if not 0 <= weight <= 1:
        raise QuadspikeError(f"TET needs 0 <= weight <= 1, got {weight}")
    wide = logits.to(compute_dtype(logits))
    each = F.cross_entropy(
        wide.flatten(0, 1), labels.repeat(len(logits)), label_smoothing=label_smoothing
    )
    return (1 - weight) * each + weight * (wide - target).square().mean()


def _check(logits: Tensor, labels: Tensor) -> None:
    if logits.ndim != 3 or labels.shape != logits.shape[1:2]:
        raise QuadspikeError(
            f"a loss takes logits [T, B, classes] and labels [B], "
            f"got {tuple(logits.shape)} and {tuple(labels.shape)}"
        )
