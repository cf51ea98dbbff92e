"""Cross-entropy of the logits' mean over time, of the last step, or of every step."""

from __future__ import annotations

import torch
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
    scores = _checked(logits, labels).mean(0)
    return F.cross_entropy(scores, labels, label_smoothing=label_smoothing)


def last_cross_entropy(logits: Tensor, labels: Tensor, label_smoothing: float = 0.0) -> Tensor:
    """LTS: cross-entropy of the last step alone, for a network with `readout="last"`.

    >>> import torch
    >>> logits = torch.stack([torch.full((1, 2), 9.0), torch.zeros(1, 2)])
    >>> round(float(last_cross_entropy(logits, torch.tensor([1]))), 4)
    0.6931
    """
    scores = _checked(logits, labels)[-1]
    return F.cross_entropy(scores, labels, label_smoothing=label_smoothing)


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
    wide = _checked(logits, labels)
    if not 0 <= weight <= 1:
        raise QuadspikeError(f"TET needs 0 <= weight <= 1, got {weight}")
    each = F.cross_entropy(
        wide.flatten(0, 1), labels.repeat(len(logits)), label_smoothing=label_smoothing
    )
    return (1 - weight) * each + weight * (wide - target).square().mean()


def _checked(logits: Tensor, labels: Tensor) -> Tensor:
    """The logits in the type losses compute in, at least float32."""
    if not isinstance(labels, Tensor) or labels.dtype not in (torch.int64, torch.uint8):
        given = labels.dtype if isinstance(labels, Tensor) else type(labels).__name__
        raise QuadspikeError(
            f"a loss takes labels as the numbers of classes, torch.int64, got {given}; "
            "use torch.as_tensor(labels).long()"
        )
    if logits.ndim != 3 or not len(logits) or labels.shape != logits.shape[1:2]:
        raise QuadspikeError(
            f"a loss takes logits [T, B, classes] and labels [B], "
            f"got {tuple(logits.shape)} and {tuple(labels.shape)}"
        )
    return logits.to(compute_dtype(logits))
