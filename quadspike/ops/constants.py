"""Constants over time: numbers, per layer, `[C]`, or `[T, C]`, and their row at a step."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from quadspike.errors import QuadspikeError


def row(values: Tensor, step: int, like: Tensor) -> Tensor:
    """The row of a norm's `[1 or T, C]` for a step, shaped to broadcast over `[B, C, ...]`."""
    return _spread(values[0] if len(values) == 1 else rows(values, step, 1)[0], like)


def rows(values: Tensor, start: int, steps: int) -> Tensor:
    """The rows of `[T, C]` for `steps` steps from `start` on."""
    if start + steps > values.shape[0]:
        raise QuadspikeError(
            f"step {start + steps} was asked for, but this layer has parameters for "
            f"{values.shape[0]} steps; start anew, or use parameters shared by all steps"
        )
    return values[start : start + steps]


def for_channels(values: Tensor, channels: int) -> Tensor:
    """A constant as a number, `[C]` or `[T, C]`; one of a single channel is every channel's."""
    if values.ndim and values.shape[-1] == 1:
        values = values.expand(*values.shape[:-1], channels)
    if values.ndim > 2 or (values.ndim and values.shape[-1] != channels):
        raise QuadspikeError(
            f"a neuron's constant is a number, [C] or [T, C], got {tuple(values.shape)} for "
            f"{channels} channels"
        )
    return values


def at_step(constants: Any, step: int, like: Tensor) -> Any:
    """Named constants at one step: numbers as they are, tensors shaped to broadcast."""

    def pick(value: Any) -> Any:
        if not isinstance(value, Tensor) or value.ndim == 0:
            return value
        return _spread(rows(value, step, 1)[0] if value.ndim == 2 else value, like)

    return type(constants)(*map(pick, constants))


def _spread(values: Tensor, like: Tensor) -> Tensor:
    """`[C]` against `[B, C, ...]`."""
    return values.to(like.dtype).view(-1, *[1] * (like.ndim - 2))
