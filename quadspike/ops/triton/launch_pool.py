"""Launching the kernels of pooling."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from quadspike.ops import layout
from quadspike.ops.pool import Window, images, results
from quadspike.ops.triton import tiles
from quadspike.ops.triton.launch import launch
from quadspike.ops.triton.pool import pool_backward_kernel, pool_kernel

READ_AT_ONCE = 16
"""Pixels of a window asked for before the first is used, at most."""

SUMMED_AT_ONCE = 4
"""Pixels whose gradients are summed side by side, at most."""


def forward(x: Tensor, window: Window) -> tuple[Tensor, Tensor]:
    """Output, and which pixel of its window won (empty for means)."""
    x = layout.settle(x, channels_last=True)
    out, winners = results(x, window)
    places = math.prod(out.shape[2:])
    cut = tiles.cut("pool", places, x.shape[1], 1, x.element_size(), 1, persistent=False)
    with torch.cuda.device_of(x):
        launch(pool_kernel, x.shape[0] * cut.blocks * cut.columns)(
            x,
            out,
            winners,
            *x.shape[2:],
            *out.shape[2:],
            x.shape[1],
            cut.blocks,
            cut.columns,
            MAXIMUM=window.kind == "max",
            KERNEL=tuple(window.kernel),
            STRIDE=tuple(window.stride),
            PADDING=tuple(window.padding),
            AT_ONCE=_divisor(math.prod(window.kernel), READ_AT_ONCE),
            ROWS=cut.tile.rows,
            COLUMNS=cut.tile.columns,
            num_warps=cut.tile.warps,
        )
    return out, winners


def backward(grad: Tensor, winners: Tensor, size: list[int], window: Window) -> Tensor:
    """The gradient of images of `size`."""
    grad = layout.settle(grad, channels_last=True)
    winners = layout.settle(winners, channels_last=True) if window.kind == "max" else winners
    out = images(grad, size, grad.dtype)
    each = zip(size, window.stride, window.padding, strict=True)
    patches = [(n - 1 + padding) // stride + 1 for n, stride, padding in each]
    channels, itemsize = grad.shape[1], grad.element_size()
    cut = tiles.cut("pool", math.prod(patches), channels, 1, itemsize, 1, persistent=False)
    both = zip(window.kernel, window.stride, strict=True)
    with torch.cuda.device_of(grad):
        launch(pool_backward_kernel, grad.shape[0] * cut.blocks * cut.columns)(
            grad,
            winners,
            out,
            *size,
            *grad.shape[2:],
            channels,
            *patches,
            cut.blocks,
            cut.columns,
            MAXIMUM=window.kind == "max",
            KERNEL=tuple(window.kernel),
            STRIDE=tuple(window.stride),
            PADDING=tuple(window.padding),
            WINDOWS=tuple(-(-kernel // stride) for kernel, stride in both),
            AT_ONCE=_divisor(math.prod(window.stride), SUMMED_AT_ONCE),
            ROWS=cut.tile.rows,
            COLUMNS=cut.tile.columns,
            num_warps=cut.tile.warps,
        )
    return out


def _divisor(n: int, most: int) -> int:
    """The largest divisor of `n` up to `most`."""
    return next(k for k in range(min(n, most), 0, -1) if n % k == 0)
