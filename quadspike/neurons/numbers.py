"""A neuron's numbers: floats or tensors, how they are held, checked and shown."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from quadspike.errors import QuadspikeError


def everywhere(condition: Any) -> bool:
    """Whether a comparison of numbers or tensors holds for every element."""
    return bool(condition.all()) if isinstance(condition, Tensor) else bool(condition)


def evaluated(line: Callable[..., Any], *points: Any, p: Any) -> NDArray[np.float64]:
    """A line at numbers or arrays, in float64; as tensors, whose methods it may call."""
    value = line(*(torch.as_tensor(point, dtype=torch.float64) for point in points), p)
    return np.asarray(torch.as_tensor(value), dtype=np.float64)


def detached(value: Any) -> Any:
    """A parameter's value without its gradient."""
    return value.detach() if isinstance(value, Tensor) else value


def show(value: Any) -> str:
    """A number for a message; a tensor as its range."""
    if isinstance(value, Tensor):
        return f"{value.min().item():g}..{value.max().item():g}"
    return f"{value:g}"


def check_above_rest(owner: str, u_th: Any) -> None:
    """Refuse a threshold at which a membrane fires without input."""
    if not everywhere(u_th > 0):
        raise QuadspikeError(f"{owner} rests at 0 and needs u_th > 0, got {show(u_th)}")


def check_shapes(owner: str, **values: Any) -> None:
    """Refuse parameters that are for different channels or steps."""
    shapes = {name: tuple(v.shape) for name, v in values.items() if isinstance(v, Tensor)}
    try:
        torch.broadcast_shapes(*shapes.values())
    except RuntimeError:
        given = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise QuadspikeError(
            f"{owner}: parameters must be for the same channels and steps, got {given}"
        ) from None


def as_parameter(owner: str, name: str, given: Any, may_be_complex: bool) -> Any:
    """A parameter as it is held: a float, a complex, or a tensor `[C]` or `[T, C]`; finite."""
    value = _held(owner, name, given)
    finite = torch.isfinite(value) if isinstance(value, Tensor) else cmath.isfinite(value)
    if not everywhere(finite):
        raise QuadspikeError(f"{owner}: {name} must be a finite number, got {value}")
    if isinstance(value, complex) and not may_be_complex:
        raise QuadspikeError(f"{owner}: {name} must be a real number, got {value}")
    return value


def _held(owner: str, name: str, given: Any) -> Any:
    try:
        if isinstance(given, str):
            given = complex(given)
        elif isinstance(given, Sequence):
            given = torch.tensor(given, dtype=torch.float32)
        if isinstance(given, complex):
            return given if given.imag else given.real
        if not isinstance(given, Tensor):
            return float(given)
    except (TypeError, ValueError):
        raise QuadspikeError(f"{owner}: {name} must be a number, got {given!r}") from None
    if given.ndim > 2 or not given.is_floating_point():
        raise QuadspikeError(
            f"{owner}: {name} must be a number or a floating tensor [C] or [T, C], "
            f"got {given.dtype} {tuple(given.shape)}"
        )
    fixed = given.ndim == 0 and not isinstance(given, nn.Parameter)
    return float(given) if fixed else given


def logit(value: float) -> float:
    """The number whose sigmoid is `value`; for 0 and 1 one whose sigmoid rounds to them.

    >>> logit(0.5), logit(1.0)
    (0.0, 40.0)
    """
    if value in (0, 1):
        return 80.0 * value - 40.0
    return math.log(value / (1 - value))


def brief(value: Any) -> Any:
    """A parameter as a neuron's description has it."""
    many = isinstance(value, Tensor) and value.numel() > 1
    return f"{list(value.shape)} in {show(value)}" if many else plain(value)


def plain(value: Any) -> Any:
    """A parameter as JSON can hold it."""
    if isinstance(value, Tensor):
        return value.detach().cpu().tolist()
    return str(value) if isinstance(value, complex) else value
