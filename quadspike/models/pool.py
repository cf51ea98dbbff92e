"""Averages over squares of pixels."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class AveragePool(nn.AvgPool2d):
    """`nn.AvgPool2d(size)`, the same numbers.

    On a GPU torch's own kernels for channels-last images take about ten times what reading
    and writing them does, so there the squares are averaged through a view.
    """

    def forward(self, x: Tensor) -> Tensor:
        size = int(self.kernel_size)  # type: ignore[arg-type]
        whole = x.shape[-1] % size == 0 and x.shape[-2] % size == 0
        if x.is_cuda and whole and x.is_contiguous(memory_format=torch.channels_last):
            return squares_mean(x, size)
        return super().forward(x)


def squares_mean(x: Tensor, size: int) -> Tensor:
    """The mean of every `size` x `size` square of a channels-last `x [N, C, H, W]`.

    >>> x = torch.arange(16.0).view(1, 1, 4, 4)
    >>> squares_mean(x, 2).tolist()
    [[[[2.5, 4.5], [10.5, 12.5]]]]
    """
    result: Tensor = _SquaresMean.apply(x, size)
    return result


class _SquaresMean(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, size: int) -> Tensor:
        ctx.size = size
        return _squares(x, size).mean((2, 4)).permute(0, 3, 1, 2)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        share = (grad * (1 / ctx.size**2)).permute(0, 2, 3, 1)
        n, h, w, channels = share.shape
        spread = share.new_empty((n, h, ctx.size, w, ctx.size, channels))
        spread.copy_(share[:, :, None, :, None])
        whole = spread.view(n, h * ctx.size, w * ctx.size, channels)
        return whole.permute(0, 3, 1, 2), None


def _squares(x: Tensor, size: int) -> Tensor:
    """`[N, H / size, size, W / size, size, C]`, a view."""
    n, channels, h, w = x.shape
    return x.permute(0, 2, 3, 1).view(n, h // size, size, w // size, size, channels)
