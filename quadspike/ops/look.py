"""What taps record of a layer: reductions of its membranes, the same for every backend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from quadspike.ops.constants import at_step
from quadspike.taps import Taps


class _Edges(NamedTuple):
    low: Any
    high: Any


def look(
    neuron: Any, membranes: Sequence[Tensor], spikes: Sequence[Tensor], start: int, taps: Taps
) -> dict[str, Tensor]:
    """What `taps` asks for, from the membranes and spikes of every step."""
    kinds = {
        "rate": lambda u, o, t: o.abs().mean(),
        "mean": lambda u, o, t: u.mean(),
        "window": lambda u, o, t: inside_window(neuron, u, start + t).to(u.dtype).mean(),
        "largest": lambda u, o, t: u.abs().amax(),
        "finite": lambda u, o, t: torch.isfinite(u).all(),
        "histogram": lambda u, o, t: _histogram(u, taps),
        "membrane": lambda u, o, t: u,
        "spikes": lambda u, o, t: o,
    }
    return {
        kind: torch.stack([kinds[kind](u, spikes[t], t) for t, u in enumerate(membranes)])
        for kind in taps.kinds
        if kind in kinds
    }


def inside_window(neuron: Any, u: Tensor, step: int) -> Tensor:
    """Which membranes of a step `[B, ...]` lie inside the surrogate's window."""
    edges = at_step(_Edges(*neuron.surrogate.reach(neuron)), step, u)
    v = neuron.excess(u, at_step(neuron.constants(), step, u))
    within: Tensor = (v >= edges.low) & (v <= edges.high)
    return within


def _histogram(u: Tensor, taps: Taps) -> Tensor:
    """Counts in equal bins; what lies outside falls in the first or the last."""
    place = (u.detach() - taps.low) * (taps.bins / (taps.high - taps.low))
    index = place.nan_to_num(0.0).floor().clamp(0, taps.bins - 1).long()
    counts = torch.zeros(taps.bins, dtype=torch.int64, device=u.device)
    return counts.scatter_add_(0, index.flatten(), torch.ones_like(index).flatten())
