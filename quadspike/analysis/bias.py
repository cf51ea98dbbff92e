"""How far a surrogate is from the derivative it stands for, over the membrane's density.

A spike has no derivative, but its expectation has. Move the membrane by `m h(u)`, with u of the
density pi: then

    d/dm E[ Theta(u + m h(u) - u_th) ] = h(u_th) pi(u_th)        at m = 0

and a surrogate says `E[S(u) h(u)]` in its place. `h = 1` is a shift, what a bias does; `h = z`, the
standardised membrane, is a stretch, what the gain of a normalisation does. Of any other change
its regression on u counts, and these two are the straight line of that.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from quadspike.analysis.dynamics import Array, number
from quadspike.neurons import MembraneDensity, Neuron
from quadspike.surrogates import Surrogate, create_surrogate

Function = Callable[[Array], Array]

_NODES = 200
_REACH = 10.0
"""Standard deviations either side of the mean that are integrated over."""


@dataclass(frozen=True)
class Slope:
    """The derivative of the firing rate: what it is, and what the surrogate takes it for."""

    true: float
    surrogate: float

    @property
    def ratio(self) -> float:
        """1 for a surrogate without bias."""
        return self.surrogate / self.true


@dataclass(frozen=True)
class Bias:
    """A surrogate's two mean slopes, and which share of its mass lies at membranes that fire."""

    shift: Slope
    stretch: Slope
    firing: float

    @property
    def agreement(self) -> float:
        """The cosine between (shift, stretch) as the surrogate has them and as they are.

        Whatever both have too large or too small alike, a learning rate makes good; this it
        cannot.
        """
        true = np.array([self.shift.true, self.stretch.true])
        said = np.array([self.shift.surrogate, self.stretch.surrogate])
        return float(true @ said / (np.linalg.norm(true) * np.linalg.norm(said)))


def surrogate_bias(
    neuron: Neuron, surrogate: Surrogate | str | None = None, density: MembraneDensity | None = None
) -> Bias:
    """The bias of the neuron's surrogate, or of another one.

    Over the stationary density of the membrane under tdBN's input unless given.

    >>> from quadspike import QIF
    >>> from quadspike.surrogates import Window
    >>> literal = surrogate_bias(QIF(), Window("mean"))
    >>> round(literal.shift.ratio, 2), round(literal.stretch.ratio, 2)
    (1.31, 0.03)
    """
    if surrogate is not None:
        neuron = copy.deepcopy(neuron)  # which holds the progress of one that evolves
        neuron.surrogate = create_surrogate(surrogate)
    chosen = neuron.surrogate
    pi = neuron.density() if density is None else density
    u_th, origin = number(neuron.threshold), number(neuron.origin)
    given = chosen.constants(neuron)
    constants = type(given)(*(number(c) if isinstance(c, Tensor) else c for c in given))

    def slope(u: Array) -> Array:
        return np.asarray(chosen.mean_slope(torch.from_numpy(u - origin), constants))

    def standardised(u: Array) -> Array:
        return (u - pi.mean) / pi.std

    excesses = (*chosen.reach(neuron), *chosen.corners(neuron))
    inner = sorted({u_th, *(origin + number(v) for v in excesses)})
    low, high = (pi.mean + side * _REACH * pi.std for side in (-1, 1))
    ends = [min(low, inner[0]), *inner, max(high, inner[-1])]

    def mean_slope(h: Function, least: float) -> float:
        pieces = [pair for pair in pairwise(ends) if pair[0] >= least]
        return sum(_integral(lambda u: slope(u) * h(u) * pi.pdf(u), *pair) for pair in pieces)

    at_threshold = float(pi.pdf(u_th))
    shift = mean_slope(np.ones_like, ends[0])
    return Bias(
        Slope(at_threshold, shift),
        Slope(
            float(standardised(np.asarray(u_th))) * at_threshold,
            mean_slope(standardised, ends[0]),
        ),
        mean_slope(np.ones_like, u_th) / shift,
    )


def _integral(f: Function, low: float, high: float) -> float:
    """Gauss-Legendre, between the places where a surrogate jumps or bends."""
    node, weight = np.polynomial.legendre.leggauss(_NODES)
    half = (high - low) / 2
    return float(half * (weight @ f(half * node + (low + high) / 2)))
