"""The arithmetic of a soma, and the choice of who computes it.

`ops` receives a neuron as an argument and imports none.
"""

from __future__ import annotations

import importlib.util
import os
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from quadspike.errors import QuadspikeError, check_name
from quadspike.ops import equations, fused, reference
from quadspike.ops.fused import Normalisation
from quadspike.ops.reference import (
    Moments,
    ResidualPlace,
    SomaResult,
    compute_dtype,
    statistics,
)
from quadspike.state import State
from quadspike.taps import Taps

__all__ = [
    "BACKENDS",
    "Backend",
    "Choice",
    "Moments",
    "Normalisation",
    "ResidualPlace",
    "SomaResult",
    "check_backend",
    "choose",
    "compute_dtype",
    "soma",
    "statistics",
]

Backend = Literal["auto", "reference", "triton"]
BACKENDS: tuple[str, ...] = ("auto", "reference", "triton")
_STORED = {torch.float32: "float32", torch.bfloat16: "bfloat16", torch.float16: "float16"}


class Choice(NamedTuple):
    """Which implementation runs, and why."""

    backend: str
    reason: str


def check_backend(backend: str) -> str:
    """Refuse a backend that does not exist."""
    return check_name("backend", backend, BACKENDS)


def choose(backend: str, neuron: Any, device: torch.device, dtype: torch.dtype) -> Choice:
    """Who computes a soma of `neuron` on tensors of this device and type, and why.

    "auto" takes the fused kernels for every CUDA tensor they can run, and the reference
    otherwise; nothing is ever swapped in silently.
    """
    check_backend(backend)
    if backend == "reference":
        return Choice("reference", "asked for")
    obstacle = _obstacle(device.type, dtype, type(neuron), type(neuron.surrogate))
    if backend == "triton":
        if obstacle:
            raise QuadspikeError(
                f"backend 'triton' was asked for, but the kernels cannot run here: {obstacle}; "
                "use 'auto' or 'reference'"
            )
        return Choice("triton", "asked for")
    if device.type == "cpu":
        return Choice("reference", "tensors on the CPU")
    if obstacle:
        return Choice("reference", obstacle)
    return Choice("triton", f"fused kernels for {_STORED[dtype]} on {device.type}")


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _obstacle(device: str, dtype: torch.dtype, neuron: type, surrogate: type) -> str:
    """Why the kernels cannot run; empty if they can."""
    if importlib.util.find_spec("triton") is None:
        return "Triton is not installed"
    if device != "cuda" and not (device == "cpu" and os.environ.get("TRITON_INTERPRET") == "1"):
        return f"they are for CUDA, not {device} (or Triton's interpreter, TRITON_INTERPRET=1)"
    if dtype not in _STORED:
        return f"{str(dtype).removeprefix('torch.')} (they store {', '.join(_STORED.values())})"
    return str(equations.obstacle(neuron, surrogate))


def soma(
    x: Tensor,
    neuron: Any,
    *,
    steps: int,
    batch: int,
    norm: Any = None,
    residual: Tensor | None = None,
    place: ResidualPlace = "before",
    state: State | None = None,
    taps: Taps | None = None,
    keep_state: bool = True,
    backend: str = "auto",
) -> SomaResult:
    """Norm, residual and neuron over time, by whoever `choose` names; see `reference.soma`."""
    choice = choose(backend, neuron, x.device, x.dtype)
    given: dict[str, Any] = {
        "steps": steps,
        "batch": batch,
        "norm": norm,
        "residual": residual,
        "place": place,
        "state": state,
        "taps": taps,
    }
    if choice.backend == "triton":
        return fused.soma(x, neuron, keep_state=keep_state, **given)
    return reference.soma(x, neuron, **given)
