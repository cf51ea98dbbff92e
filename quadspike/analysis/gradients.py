"""How a loss's gradient comes down a network: layer by layer, and through residual blocks.

Under batch normalisation a layer takes the gradient at its output to the gradient at its
synapse's input and multiplies its squared norm by about

    q = gain^2 / Var(received) * E[(e S(u) du/dI)^2]

where `gain` is the normalised current's standard deviation, `Var(received)` that of the spikes
the synapse receives (r (1 - r) at a firing rate r, per channel), `S` the surrogate, `du/dI` what
the membrane takes of its current and `e` what a spike is worth; both are 1 for most neurons.
Weights are taken as independent with mean 0: a synapse that multiplies a variance by
`fan_in Var(W)` on its way up multiplies the squared norm by as much on its way down, so fans,
strides and weights cancel. With tdBN at u_th = 1/2, r = 0.159 and a surrogate of height 1, q is
1.87 times the share inside the window.

Each step is taken by itself: what comes back from the next steps' membranes is not in q, so that a
neuron which remembers, as LIF does, multiplies by more.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from quadspike.analysis.membranes import describe_membranes
from quadspike.analysis.traces import BlockTrace, Loss, SomaTrace, trace
from quadspike.draws import Draws
from quadspike.models import Network
from quadspike.neurons import Neuron
from quadspike.ops.constants import at_step
from quadspike.randomness import Key


def examine(model: Network, loss: Loss) -> dict[str, Any]:
    """Every soma and every `models.Block` of `model` under one backward of `loss`, ready for JSON.

    Gradients are root mean squares; those of activations are of each sample's own loss, if
    `loss` is a mean over samples. `factor` is what a layer multiplies the squared norm by, and
    `growth` the geometric mean of all.

    >>> from quadspike import create_model
    >>> model, x = create_model("cnn", in_channels=1, seed=0), torch.randn(8, 1, 8, 8)
    >>> found = examine(model, lambda net: net(x).square().mean())
    >>> [layer["layer"] for layer in found["layers"]], found["blocks"]
    (['conv1.soma', 'conv2.soma', 'conv3.soma'], [])
    """
    seen = trace(model, loss)
    batch = len(next(iter(seen.somas.values())).membranes[0])
    gain = model.config.get("initial_gain", 1.0) if model.config else 1.0
    layers = [
        {"layer": name, **describe_membranes(soma, gain), **describe_gradient(soma)}
        for name, soma in seen.somas.items()
    ]
    for layer, following in pairwise(layers):
        layer["gradient"]["to_next"] = _ratio(
            layer["gradient"]["output"], following["gradient"]["output"]
        )
    return {
        "loss": seen.loss,
        "growth": {
            kind: _geometric_mean([layer["factor"][kind] for layer in layers])
            for kind in ("measured", "predicted")
        },
        "layers": layers,
        "blocks": [
            {"block": name, **describe_block(block, batch)} for name, block in seen.blocks.items()
        ],
    }


@torch.no_grad()
def describe_gradient(seen: SomaTrace) -> dict[str, Any]:
    """A soma's backward half: the gradient at its output, membrane, synapse's input and weights."""
    batch = len(seen.membranes[0])
    membranes = [u.grad for u in seen.membranes if u.grad is not None]
    out = None if seen.output is None else seen.output.grad
    down = None if seen.received is None else seen.received.grad
    weight = None if seen.synapse is None else seen.synapse.weight.grad
    measured = _ratio(_square(down), _square(out))
    return {
        "gradient": {
            "output": _rms(out, batch),
            "membrane": _rms(torch.stack(membranes) if membranes else None, batch),
            "received": _rms(down, batch),
            "weights": _rms(weight),
            "to_next": None,
        },
        "factor": {
            "measured": measured,
            "predicted": None if down is None else predicted_factor(seen),
        },
    }


@torch.no_grad()
def predicted_factor(seen: SomaTrace) -> float | None:
    """`gain^2 / Var(received) * E[(e S(u) du/dI)^2]`.

    None without a normalisation, or where the membrane has one of its own or the neuron mixes
    the currents of several steps.
    """
    norm, received = seen.soma.norm, seen.received
    mixes = type(seen.soma.neuron).mix is not Neuron.mix
    if norm is None or norm.membrane is not None or received is None or mixes:
        return None
    gain = norm.gain * norm.coefficients()[0]
    axes = [axis for axis in range(received.ndim) if axis != 1]
    variance = float(received.var(axes, correction=0).mean())
    return _ratio(float(gain.square().mean()) * mean_square_slope(seen), variance)


def mean_square_slope(seen: SomaTrace) -> float:
    """`E[(e S(u) du/dI)^2]` over the membranes: of most neurons the share inside the window."""
    neuron, squares = seen.soma.neuron, []
    constants, given = neuron.constants(), neuron.surrogate.constants(neuron)
    before = spikes = torch.zeros_like(seen.membranes[0])
    # Draws of its own, the same at every look.
    draws = Draws.of(Key(0, 0), "", neuron.surrogate.draws, before)
    for t, u in enumerate(seen.membranes):
        p = at_step(constants, t, u)
        s = at_step(given, t, u)
        slope = neuron.surrogate.slope(neuron.excess(u, p), s, draws.at(t))
        passed = getattr(p, "emitted", 1.0) * slope * _taken(neuron, before, spikes, p)
        squares.append(float(passed.square().mean()))
        before, spikes = u, neuron.fire(u, p).to(u.dtype)
    return sum(squares) / len(squares)


def _taken(neuron: Neuron, u: Tensor, spikes: Tensor, p: Any) -> Tensor:
    """What the next membrane takes of its current: `du/dI`, element by element."""
    with torch.enable_grad():
        current = torch.zeros_like(u, requires_grad=True)
        taken: Tensor
        (taken,) = torch.autograd.grad(neuron.advance(u, spikes, current, p).sum(), current)
    return taken


@torch.no_grad()
def describe_block(block: BlockTrace, batch: int) -> dict[str, Any]:
    """What arrives at a residual block's input through its shortcut and through its convolutions.

    `share` is the shortcut's part of the two squared norms, `cosine` how much they agree.
    """
    one, two = block.shortcut.grad, block.convolutions.grad
    if one is None or two is None:
        return dict.fromkeys(("shortcut", "convolutions", "share", "cosine"))
    squares = [float(path.double().square().sum()) for path in (one, two)]
    return {
        "shortcut": _rms(one, batch),
        "convolutions": _rms(two, batch),
        "share": _ratio(squares[0], sum(squares)),
        "cosine": _ratio(float((one * two).sum()), math.sqrt(squares[0] * squares[1])),
    }


def _square(x: Tensor | None) -> float | None:
    return None if x is None else float(x.double().square().sum())


def _rms(x: Tensor | None, factor: float = 1.0) -> float | None:
    return None if x is None else factor * float(x.double().square().mean().sqrt())


def _ratio(upper: float | None, lower: float | None) -> float | None:
    return upper / lower if upper is not None and lower else None


def _geometric_mean(values: list[float | None]) -> float | None:
    logs = [math.log(value) for value in values if value]
    return math.exp(sum(logs) / len(logs)) if logs else None
