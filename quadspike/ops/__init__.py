"""The arithmetic of a soma, and the choice of who computes it.

`ops` receives a neuron as an argument and imports none.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from quadspike.errors import QuadspikeError, check_name
from quadspike.ops.reference import (
    Moments,
    ResidualPlace,
    SomaResult,
    compute_dtype,
    soma,
    statistics,
)

__all__ = [
    "BACKENDS",
    "Backend",
    "Choice",
    "Moments",
    "ResidualPlace",
    "SomaResult",
    "choose",
    "compute_dtype",
    "soma",
    "statistics",
]

Backend = Literal["auto", "reference", "triton"]
BACKENDS: tuple[str, ...] = ("auto", "reference", "triton")


class Choice(NamedTuple):
    """Which implementation runs, and why."""

    backend: str
    reason: str


def choose(backend: str) -> Choice:
    """Settle `backend`; no path is ever swapped in silently."""
    check_name("backend", backend, BACKENDS)
    if backend == "triton":
        raise QuadspikeError(
            "backend 'triton' was asked for, but this version has no fused kernels; "
            "use 'auto' or 'reference'"
        )
    reason = "asked for" if backend == "reference" else "the only implementation in this version"
    return Choice("reference", reason)
