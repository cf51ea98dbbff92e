"""What one layer's membranes and spikes did: rates, spread, histogram, window, regions, memory."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from quadspike.analysis.layers import middle
from quadspike.analysis.traces import SomaTrace
from quadspike.neurons import LIF, QIF, Neuron
from quadspike.neurons.numbers import plain
from quadspike.norms import TDBatchNorm
from quadspike.ops.constants import at_step
from quadspike.ops.look import inside_window

LOW, HIGH, BINS = -3.0, 3.0, 120
"""The histogram's axis."""


@torch.no_grad()
def describe_membranes(seen: SomaTrace, initial_gain: float = 1.0) -> dict[str, Any]:
    """A soma's forward half as plain numbers, ready for JSON; None for what it does not have.

    `regions` are the paper's: red u < min(u1, u2), blue between the roots, both included, green
    above. `after_red` is the share of the spikes from the second step on that follow a red
    membrane. `window_by_shortcut` is the share inside the window where the shortcut's spike joined
    the current, and where it was silent. `stationary` is what the membranes' exact density is a
    function of: QIF or LIF, and the spread that tdBN gives the current at the start, when its
    weights are `initial_gain`.
    """
    neuron, membranes = seen.soma.neuron, seen.membranes
    spikes = [_spikes(neuron, u, t) for t, u in enumerate(membranes)]
    inside = [inside_window(neuron, u, t) for t, u in enumerate(membranes)]
    u, o, within = torch.stack(membranes), torch.stack(spikes), torch.stack(inside)
    spread, mean = torch.std_mean(u, correction=0)
    fired = o.abs()
    described: dict[str, Any] = {
        "neuron": neuron.name,
        "rate": float(fired.mean()),
        "rate_by_step": [float(step.mean()) for step in fired],
        "mean": float(mean),
        "std": float(spread),
        "threshold": middle(neuron.threshold),
        "fires_at": [middle(edge) for edge in neuron.edges],
        "window": [middle(edge) for edge in neuron.surrogate.window(neuron)],
        "inside_window": float(within.to(u.dtype).mean()),
        "histogram": histogram(u),
        "stationary": _stationary(seen, initial_gain),
        "gain": _gain(seen),
        "temporal_correlation": _mean_or_none(
            [c for pair in pairwise(spikes) if (c := correlation(*pair)) is not None]
        ),
        "regions": None,
        "after_red": None,
        "window_by_shortcut": _window_by_shortcut(seen, within),
    }
    if isinstance(neuron, QIF) and not (seen.soma.norm and seen.soma.norm.membrane):
        red, blue, green = regions_of(neuron, u)
        shares = (float(region.to(u.dtype).mean()) for region in (red, blue, green))
        described["regions"] = dict(zip(("red", "blue", "green"), shares, strict=True))
        later = fired[1:]
        total = float(later.sum())
        described["after_red"] = float((later * red[:-1]).sum()) / total if total else None
    return described


def histogram(u: Tensor) -> dict[str, Any]:
    """Counts in equal bins from `low` to `high`, and how many membranes lie on either side.

    >>> found = histogram(torch.tensor([-7.0, -3.0, 0.01, 0.02, 3.0]))
    >>> found["below"], found["counts"][0], found["counts"][60], found["above"]
    (1, 1, 2, 1)
    """
    within = u[(u >= LOW) & (u < HIGH)]
    # A membrane just under the end may round up to it.
    place = ((within - LOW) * (BINS / (HIGH - LOW))).long().clamp(max=BINS - 1)
    return {
        "low": LOW,
        "high": HIGH,
        "below": int((u < LOW).sum()),
        "above": int((u >= HIGH).sum()),
        "counts": torch.bincount(place, minlength=BINS).tolist(),
    }


def regions_of(neuron: QIF, u: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Which membranes `[T, B, C, ...]` are red, blue and green.

    With complex roots there is no blue, and red meets green at the vertex.

    >>> [part.tolist() for part in regions_of(QIF(), torch.tensor([[-0.1], [0.3], [0.6]]))]
    [[[True], [False], [False]], [[False], [True], [False]], [[False], [False], [True]]]
    """
    steps = []
    for t, membrane in enumerate(u):
        p = at_step(neuron.constants(), t, membrane)
        squared = torch.as_tensor(p.u_sum**2 - 4 * p.u_prod, dtype=u.dtype, device=u.device)
        between = squared.clamp(min=0).sqrt() / 2
        low, high = p.u_sum / 2 - between, p.u_sum / 2 + between
        steps.append(torch.stack([membrane < low, (membrane >= low) & (membrane <= high)]))
    red, blue = torch.stack(steps, 1)
    return red, blue, ~(red | blue)


def correlation(x: Tensor, y: Tensor) -> float | None:
    """Pearson's, over all elements; None where one of them is constant.

    >>> round(correlation(torch.tensor([0.0, 1.0, 1.0]), torch.tensor([1.0, 0.0, 0.0])), 6)
    -1.0
    """
    x, y = (value.double() - value.double().mean() for value in (x, y))
    size = float(x.norm() * y.norm())
    return min(1.0, max(-1.0, float((x * y).sum()) / size)) if size else None


def _gain(seen: SomaTrace) -> dict[str, float] | None:
    """The spread that the normalisation gives the current, in thresholds: of all channels (root
    mean square) and of the widest.
    """
    norm = seen.soma.norm
    if norm is None:
        return None
    gain = norm.gain * norm.coefficients()[0].abs() / middle(seen.soma.neuron.threshold)
    return {"rms": float(gain.square().mean().sqrt()), "largest": float(gain.max())}


def _stationary(seen: SomaTrace, initial_gain: float) -> dict[str, Any] | None:
    neuron, norm, residual = seen.soma.neuron, seen.soma.norm, seen.soma.residual
    if not isinstance(norm, TDBatchNorm) or isinstance(norm.gain, Tensor) or residual == "before":
        return None  # the current is not one Gaussian for all
    numbers = {name: plain(getattr(neuron, name)) for name in neuron.parameter_names()}
    if type(neuron) not in (QIF, LIF) or any(isinstance(value, list) for value in numbers.values()):
        return None
    return {"neuron": {"name": neuron.name, **numbers}, "input_std": norm.gain * initial_gain}


def _spikes(neuron: Neuron, u: Tensor, step: int) -> Tensor:
    fired: Tensor = neuron.fire(u, at_step(neuron.constants(), step, u))
    return fired.to(u.dtype)


def _window_by_shortcut(seen: SomaTrace, within: Tensor) -> dict[str, float | None] | None:
    residual = seen.residual
    if residual is None or seen.soma.residual != "before":
        return None
    if not torch.equal(residual, residual.round()):
        return None  # no spikes: the shortcut was normalised
    fired = (residual != 0).view(-1, *within.shape[1:]).expand_as(within)
    chosen = {"fired": within[fired], "silent": within[~fired]}
    return {name: float(w.double().mean()) if len(w) else None for name, w in chosen.items()}


def _mean_or_none(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
