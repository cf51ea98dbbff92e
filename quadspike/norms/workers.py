"""Statistics of all workers together."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from quadspike import ops


def merge(part: ops.Moments) -> ops.Moments:
    """The moments of all workers together (Chan's rule, differentiable)."""
    n = _AllReduce.apply(part.n)
    mean = _AllReduce.apply(part.mean * part.n) / n
    m2 = _AllReduce.apply(part.m2 + part.n * (part.mean - mean) ** 2)
    return ops.Moments(n, mean, m2)


class _AllReduce(torch.autograd.Function):
    """A sum over workers, whose gradient is the sum of their gradients."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        total = x.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        total = grad.contiguous().clone()
        dist.all_reduce(total)
        return total
