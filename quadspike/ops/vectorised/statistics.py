"""A batch's statistics in one pass, and the scale and shift they make."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor

from quadspike.ops.moments import merged, of_all_workers
from quadspike.ops.reference import compute_dtype
from quadspike.ops.signature import Arguments
from quadspike.ops.vectorised.blocks import Cut, flat

_ROWS = 128
"""Rows of a block whose sums torch takes one after the other: few, or rounding adds up."""


def normalise(a: Arguments) -> tuple[Tensor, Tensor]:
    """Mean, unbiased variance, 1/std and 1/n as `[4, C]`; scale and shift `[2, 1 or T, C]`.

    Empty where no norm was given.
    """
    dtype = compute_dtype(a.x)
    if a.mode not in ("batch", "running"):
        return a.x.new_empty(0, dtype=dtype), a.x.new_empty(0, dtype=dtype)
    if a.mode == "batch":
        n, mean, m2 = moments(a.x)
        if a.sync:
            mine = torch.stack([n.expand_as(mean), mean, m2])
            n, mean, m2 = merged(of_all_workers(mine)).unbind()
        var, count = m2 / n, n * (a.steps // a.x_steps)
        unbiased, one_over_n = var * (count / (count - 1)), torch.ones_like(var) / n
    else:
        mean, var = cast(Tensor, a.running_mean), cast(Tensor, a.running_var)
        mean, var = mean.to(dtype), var.to(dtype)
        unbiased, one_over_n = var, torch.zeros_like(var)
    rstd = torch.rsqrt(var + a.eps)
    scale = factor(a, rstd) * cast(Tensor, a.scale)
    shift = cast(Tensor, a.shift) - scale * mean
    made = torch.stack([mean, unbiased, rstd, one_over_n])
    return made.to(dtype), torch.stack([scale, shift]).to(dtype)


def factor(a: Arguments, rstd: Tensor) -> Tensor:
    """What the norm's weight is multiplied with."""
    return rstd * a.gain_number if a.gain is None else rstd * a.gain


def moments(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Number, mean and squared deviations of every channel, in float64.

    Each row of a block is taken as channels of its own; Chan's rule merges rows and blocks.
    """
    cut = Cut.of(x, x.shape[0])
    counts, means, variances = [], [], []
    for block in cut.blocks(flat(x, cut.elements)[0]):
        for part in block.split(_ROWS):
            mean, var = torch.batch_norm_update_stats(part.to(compute_dtype(x)), None, None, 0.0)
            groups = mean.view(-1, cut.channels, cut.space)
            means.append(groups)
            variances.append(var.view_as(groups))
            counts += [len(part)] * len(groups)
    n = torch.tensor(counts, dtype=torch.float64)[:, None, None]
    mean, var = torch.cat(means).double(), torch.cat(variances).double()
    total = n.sum() * cut.space
    center = (n * mean).sum((0, 2), keepdim=True) / total
    m2 = (n * (var + (mean - center) ** 2)).sum((0, 2))
    return total, center.flatten(), m2
