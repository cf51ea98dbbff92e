"""How activations `[T*B, C, ...]` lie in memory: channels last, or space last."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def space_of(x: Tensor) -> int:
    """Places per channel of one sample."""
    return math.prod(x.shape[2:])


def has_channels_last(x: Tensor) -> bool:
    """Whether neighbours in memory are channels rather than places."""
    return space_of(x) == 1 or not x.is_contiguous()


def settle(x: Tensor, channels_last: bool | None = None) -> Tensor:
    """`x`, copied only if it lies neither way (or not the way asked for)."""
    across = x.movedim(1, -1)
    if channels_last is None:
        channels_last = across.is_contiguous()
    if not channels_last or space_of(x) == 1:
        return x.contiguous()
    return x if across.is_contiguous() else across.contiguous().movedim(-1, 1)


def empty(x: Tensor, rows: int, dtype: torch.dtype) -> Tensor:
    """New memory for `rows` samples that lies as `x` does."""
    shape = (rows, *x.shape[1:])
    order = [0, *range(2, x.ndim), 1] if has_channels_last(x) else list(range(x.ndim))
    strides, step = [0] * x.ndim, 1
    for axis in reversed(order):
        strides[axis] = step
        step *= shape[axis]
    return x.new_empty_strided(shape, strides, dtype=dtype)
