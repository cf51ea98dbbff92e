"""`quadspike::pool` and `quadspike::pool_backward`: maxima and means of windows of pixels.

Torch's kernels for channels-last images take several times what reading and writing them does,
and its maximum keeps eight bytes an output of where it was; here it is one.
"""

from __future__ import annotations

import importlib.util
import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

STORED = (torch.float32, torch.bfloat16, torch.float16)
LARGEST = 256
"""Pixels of a window, at most: which of them won is one byte."""

_INSTALLED = importlib.util.find_spec("triton") is not None
_SCHEMA = "str kind, int[2] kernel, int[2] stride, int[2] padding"


class Window(NamedTuple):
    """What is pooled, `kind` "max" or "mean"; height first. A mean counts padding as zeros."""

    kind: str
    kernel: list[int]
    stride: list[int]
    padding: list[int]

    def outputs(self, size: tuple[int, ...]) -> list[int]:
        """Windows down and across an image.

        >>> Window("max", [3, 3], [2, 2], [1, 1]).outputs((112, 111))
        [56, 56]
        """
        each = zip(size, self.kernel, self.stride, self.padding, strict=True)
        return [(n + 2 * pad - kernel) // stride + 1 for n, kernel, stride, pad in each]

    def fits(self, size: tuple[int, ...]) -> bool:
        """Whether every window has a pixel of the image, and no more than can be counted."""
        each = list(zip(size, self.kernel, self.padding, strict=True))
        whole = all(0 <= 2 * pad <= kernel <= n + 2 * pad for n, kernel, pad in each)
        return whole and min(self.stride) >= 1 and math.prod(self.kernel) <= LARGEST


def runs(x: Tensor, window: Window) -> bool:
    """Whether the kernels are for this tensor: channels last, on a GPU, and not to be exported."""
    return (
        _INSTALLED
        and not torch.compiler.is_exporting()
        and x.is_cuda
        and x.ndim == 4
        and x.dtype in STORED
        and x.is_contiguous(memory_format=torch.channels_last)
        and window.fits(x.shape[2:])
    )


def images(like: Tensor, size: list[int], dtype: torch.dtype) -> Tensor:
    """New memory for as many images and channels, channels last."""
    shape = (*like.shape[:2], *size)
    return torch.empty(shape, dtype=dtype, device=like.device, memory_format=torch.channels_last)


def results(x: Tensor, window: Window) -> tuple[Tensor, Tensor]:
    """New memory for the output and for which pixel of its window won (empty for means)."""
    size = window.outputs(x.shape[2:])
    if window.kind == "max":
        return images(x, size, x.dtype), images(x, size, torch.uint8)
    return images(x, size, x.dtype), x.new_empty(0, dtype=torch.uint8)


def _pool(x: Tensor, *window: Any) -> tuple[Tensor, Tensor]:
    from quadspike.ops.triton.launch_pool import forward

    return forward(x, Window(*window))


def _pool_backward(grad: Tensor, winners: Tensor, height: int, width: int, *window: Any) -> Tensor:
    from quadspike.ops.triton.launch_pool import backward

    return backward(grad, winners, [height, width], Window(*window))


pool = torch.library.custom_op(
    "quadspike::pool", _pool, mutates_args=(), schema=f"(Tensor x, {_SCHEMA}) -> (Tensor, Tensor)"
)
pool_backward = torch.library.custom_op(
    "quadspike::pool_backward",
    _pool_backward,
    mutates_args=(),
    schema=f"(Tensor grad, Tensor winners, SymInt height, SymInt width, {_SCHEMA}) -> Tensor",
)


@pool.register_fake
def _(x: Tensor, *window: Any) -> tuple[Tensor, Tensor]:
    return results(x, Window(*window))


@pool_backward.register_fake
def _(grad: Tensor, winners: Tensor, height: int, width: int, *window: Any) -> Tensor:
    return images(grad, [height, width], grad.dtype)


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    x, *ctx.window = inputs
    ctx.size = x.shape[2:]
    ctx.set_materialize_grads(False)
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(output[1])


def _differentiate(ctx: Any, grad: Tensor | None, _: Any) -> tuple[Tensor | None, ...]:
    if grad is None:
        return (None,) * 5
    share = pool_backward(grad, *ctx.saved_tensors, *ctx.size, *ctx.window)
    return share, None, None, None, None


pool.register_autograd(_differentiate, setup_context=_remember)
