"""Cross-entropy of one set of scores a sample: of the logits' mean over time, or of the last."""

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
    scores = check_logits(logits, labels).mean(0)
    return F.cross_entropy(scores, labels, label_smoothing=label_smoothing)


def last_cross_entropy(logits: Tensor, labels: Tensor, label_smoothing: float = 0.0) -> Tensor:
    """LTS: cross-entropy of the last step alone, for a network with `readout="last"`.

    >>> import torch
    >>> logits = torch.stack([torch.full((1, 2), 9.0), torch.zeros(1, 2)])
    >>> round(float(last_cross_entropy(logits, torch.tensor([1]))), 4)
    0.6931
    """
    scores = check_logits(logits, labels)[-1]
    return F.cross_entropy(scores, labels, label_smoothing=label_smoothing)


def check_logits(logits: Tensor, labels: Tensor) -> Tensor:
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
