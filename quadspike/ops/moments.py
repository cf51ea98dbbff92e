"""`quadspike::moments`: a batch's statistics by who computes the soma, where it runs in parts.

One read forward; backward `g_mean / n + 2 g_m2 (x - mean)`, in one read and one write.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from quadspike.ops import layout
from quadspike.ops.reference import Moments, compute_dtype


def statistics_by(backend: str) -> Callable[[Tensor], Moments]:
    """`reference.statistics`, computed by `backend`."""

    def statistics(x: Tensor) -> Moments:
        return Moments(*_operator(layout.settle(x), backend).unbind())

    return statistics


def merged(shares: Tensor) -> Tensor:
    """Number, mean and squared deviations `[3, C]` of shares `[n, 3, C]` together (Chan's rule)."""
    n, means, m2 = shares.unbind(1)
    total = n.sum(0)
    mean = means[0] + (n * (means - means[0])).sum(0) / total
    return torch.stack([total, mean, (m2 + n * (means - mean) ** 2).sum(0)])


def of_all_workers(mine: Tensor) -> Tensor:
    """Every worker's `[3, C]`, one share each."""
    everyone = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(everyone, mine)
    return torch.stack(everyone)


def _moments(x: Tensor, backend: str) -> Tensor:
    """Number, mean and squared deviations of every channel, `[3, C]`."""
    if backend == "triton":
        from quadspike.ops.triton.launch_forward import statistics

        with torch.cuda.device_of(x):
            return merged(statistics(x))
    from quadspike.ops.vectorised.statistics import moments

    n, mean, m2 = moments(x)
    return torch.stack([n.expand_as(mean), mean, m2]).to(compute_dtype(x))


def _moments_backward(x: Tensor, slope: Tensor, constant: Tensor) -> Tensor:
    axes = [1] * (x.ndim - 2)
    slope, constant = slope.view(-1, *axes), constant.view(-1, *axes)
    return torch.addcmul(constant, x, slope, out=torch.empty_like(x))


_operator = torch.library.custom_op(
    "quadspike::moments",
    _moments,
    mutates_args=(),
    schema="(Tensor x, str backend) -> Tensor",
)
_backward_operator = torch.library.custom_op(
    "quadspike::moments_backward",
    _moments_backward,
    mutates_args=(),
    schema="(Tensor x, Tensor slope, Tensor constant) -> Tensor",
)


@_operator.register_fake
def _(x: Tensor, backend: str) -> Tensor:
    return x.new_empty((3, x.shape[1]), dtype=compute_dtype(x))


@_backward_operator.register_fake
def _(x: Tensor, slope: Tensor, constant: Tensor) -> Tensor:
    return torch.empty_like(x)


def _remember(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(inputs[0], output)


def _differentiate(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
    x, (n, mean, _) = ctx.saved_tensors
    _, g_mean, g_m2 = grad
    slope = 2 * g_m2
    constant = g_mean / n - slope * mean
    return _backward_operator(x, slope, constant), None


_operator.register_autograd(_differentiate, setup_context=_remember)
