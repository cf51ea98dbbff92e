"""Constants over time: numbers, per layer, `[C]`, or `[1 or T, C]`, and their row at a step."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from quadspike.errors import QuadspikeError


def row(values: Tensor, step: int, like: Tensor) -> Tensor:
    """The row of `[1 or T, C]` for a step, shaped to broadcast over `[B, C, ...]`."""
    chosen = rows(values, step, 1)[0]
    return chosen.to(like.dtype).view(-1, *[1] * (like.ndim - 2))


def rows(values: Tensor, start: int, steps: int) -> Tensor:
    """The rows of `[1 or T, C]` for `steps` steps from `start` on; one row serves all steps."""
    if values.shape[0] == 1:
        return values
    if start + steps > values.shape[0]:
        raise QuadspikeError(
            f"step {start + steps} was asked for, but this layer has parameters for "
            f"{values.shape[0]} steps; start anew, or use parameters shared by all steps"
        )
    return values[start : start + steps]


def at_step(constants: Any, step: int, like: Tensor) -> Any:
    """Named constants at one step: numbers as they are, tensors shaped to broadcast."""

    def pick(value: Any) -> Any:
        if not isinstance(value, Tensor) or value.ndim == 0:
            return value
        return row(value if value.ndim == 2 else value[None], step, like)

    return type(constants)(*map(pick, constants))
