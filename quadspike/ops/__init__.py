"""The arithmetic of a soma, and the choice of who computes it.

`ops` receives a neuron as an argument and imports none.
"""

from __future__ import annotations

import importlib.util
import os
from typing import Any, Literal, NamedTuple, get_args

import torch
from torch import Tensor

from quadspike.constant import constant
from quadspike.draws import Draws
from quadspike.errors import QuadspikeError, check_name
from quadspike.ops import equations, fused, parted, reference
from quadspike.ops.fused import Normalisation
from quadspike.ops.reference import (
    Moments,
    ResidualPlace,
    SomaResult,
    compute_dtype,
    statistics,
)
from quadspike.ops.vectorised import steps as recorded
from quadspike.randomness import Key, fresh_key
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

Backend = Literal["auto", "reference", "vectorised", "triton"]
BACKENDS: tuple[str, ...] = get_args(Backend)
_STORED = {
    "triton": (torch.float32, torch.bfloat16, torch.float16),
    "vectorised": (torch.float32, torch.float64, torch.bfloat16, torch.float16),
}


class Choice(NamedTuple):
    """Which implementation runs, and why."""

    backend: str
    reason: str


def check_backend(backend: str) -> str:
    """Refuse a backend that does not exist."""
    return check_name("backend", backend, BACKENDS)


def choose(
    backend: str, neuron: Any, device: torch.device, dtype: torch.dtype, norm: Any = None
) -> Choice:
    """Who computes a soma of `neuron` behind `norm` on tensors of this device and type, and why.

    "auto" takes the vectorised path on the CPU and the fused kernels elsewhere, and the
    reference for what they cannot run and for `torch.export`; nothing is ever swapped in silently.
    """
    check_backend(backend)
    if backend == "reference":
        return Choice("reference", "asked for")
    asked = backend != "auto"
    if not asked:
        if torch.compiler.is_exporting():
            return Choice("reference", "exported, for where there is no quadspike")
        backend = "vectorised" if device.type == "cpu" else "triton"
    parts = [part for part in (neuron, neuron.firing_slope, norm) if part is not None]
    reasons = [part.only_reference for part in parts if part.only_reference]
    obstacle = (
        reasons[0]
        if reasons
        else _obstacle(backend, device.type, dtype, type(neuron), type(neuron.firing_slope))
    )
    if obstacle:
        if asked:
            raise QuadspikeError(
                f"backend {backend!r} was asked for, but cannot run here: {obstacle}; "
                "use 'auto' or 'reference'"
            )
        return Choice("reference", obstacle)
    why = "".join(f", in parts: {reason}" for reason in _in_parts(neuron, norm))
    if asked:
        return Choice(backend, f"asked for{why}")
    how = "blocks in the cache" if backend == "vectorised" else "fused kernels"
    return Choice(backend, f"{how} for {_name(dtype)} on {device.type}{why}")


def _in_parts(neuron: Any, norm: Any) -> list[str]:
    """Why a soma runs in parts; nothing where it runs whole."""
    given = [neuron] if norm is None or norm.membrane is None else [neuron, norm]
    return [part.in_parts for part in given if part.in_parts]


@constant
def _obstacle(backend: str, device: str, dtype: torch.dtype, neuron: Any, surrogate: Any) -> str:
    """Why a backend cannot run; empty if it can."""
    if backend == "vectorised" and device != "cpu":
        return f"it is for the CPU, not {device}"
    if backend == "triton":
        if importlib.util.find_spec("triton") is None:
            return "Triton is not installed"
        if device != "cuda" and not (device == "cpu" and os.environ.get("TRITON_INTERPRET") == "1"):
            return f"it is for CUDA, not {device} (or Triton's interpreter, TRITON_INTERPRET=1)"
    if dtype not in _STORED[backend]:
        return f"{_name(dtype)} (it stores {', '.join(map(_name, _STORED[backend]))})"
    if missing := equations.missing(neuron):
        return missing
    if backend == "vectorised" and surrogate.not_vectorised:
        return str(surrogate.not_vectorised)
    if backend == "triton" and (unknown := equations.obstacle(neuron, surrogate)):
        return unknown
    # Triton would find what a tape does not know too, but only while it compiles.
    return recorded.obstacle(neuron, surrogate)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


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
    key: Key | None = None,
    label: str = "",
) -> SomaResult:
    """Norm, residual and neuron over time, by whoever `choose` names; see `reference.soma`.

    What a surrogate draws is a function of `key` and `label`.
    """
    choice = choose(backend, neuron, x.device, x.dtype, norm)
    given: dict[str, Any] = {
        "steps": steps,
        "batch": batch,
        "norm": norm,
        "residual": residual,
        "place": place,
        "state": state,
        "taps": taps,
        "draws": _draws(x, neuron, batch, key, label),
    }
    if choice.backend == "reference":
        return reference.soma(x, neuron, **given)
    given |= {"keep_state": keep_state, "backend": choice.backend}
    run = parted.soma if _in_parts(neuron, norm) else fused.soma
    if x.ndim > 1:
        return run(x, neuron, **given)
    if state is not None:  # no channel axis: one channel
        given["state"] = State(state.u[:, None], state.o[:, None], state.step)
    return _without_channels(run(x[:, None], neuron, **given))


def _draws(x: Tensor, neuron: Any, batch: int, key: Key | None, label: str) -> Draws | None:
    """What the surrogate draws from, where it draws and gradients may be asked for."""
    if not (neuron.firing_slope.draws and torch.is_grad_enabled()):
        return None
    return Draws.of(key or fresh_key(), label, neuron.firing_slope.draws, x[:batch])


def _without_channels(result: SomaResult) -> SomaResult:
    state = result.state
    if state is not None:
        state = State(state.u[:, 0], state.o[:, 0], state.step)
    whole = {"membrane", "spikes"}
    seen = {kind: v[:, :, 0] if kind in whole else v for kind, v in result.seen.items()}
    return SomaResult(result.out[:, 0], state, seen)
