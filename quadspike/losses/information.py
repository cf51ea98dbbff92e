"""IM-Loss: a layer whose membranes lie around their threshold says the most."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from quadspike.errors import QuadspikeError
from quadspike.losses.cross_entropy import mean_cross_entropy


class Level(NamedTuple):
    """Where a layer's membranes lie: their mean at every step, `[T]`, and their threshold."""

    mean: Tensor
    threshold: float | Tensor


def im(
    logits: Tensor,
    labels: Tensor,
    levels: Sequence[Level],
    weight: float = 0.005,
    label_smoothing: float = 0.0,
) -> Tensor:
    """Information maximisation: `CE + weight mean_l (mean membrane of layer l - u_th)^2`.

    The mean runs over time, batch, channels and space: the tap "mean". The authors' program
    compares the mean current with `u_th / T` instead. That is not offered: behind a batch
    normalisation the current's mean is the norm's bias whatever the layer does, and the
    kernels never write the current to memory.

    >>> level = Level(torch.tensor([0.1, 0.5]), 0.5)
    >>> plain = mean_cross_entropy(torch.zeros(2, 1, 4), torch.tensor([0]))
    >>> loss = im(torch.zeros(2, 1, 4), torch.tensor([0]), [level], weight=1.0)
    >>> round(float(loss - plain), 4)
    0.04
    """
    if not levels:
        raise QuadspikeError('IM-Loss needs the membranes of a layer: model(x, taps="mean")')
    apart = [mean.mean() - _mean(threshold, mean) for mean, threshold in levels]
    information = torch.stack(apart).square().mean()
    return mean_cross_entropy(logits, labels, label_smoothing) + weight * information


def _mean(threshold: float | Tensor, like: Tensor) -> float | Tensor:
    """One threshold for the layer, where its channels have their own."""
    return threshold.to(like.dtype).mean() if isinstance(threshold, Tensor) else threshold
