"""The exact density of a membrane driven by Gaussian noise, reset included.

With F(u) the next membrane for no input (reset if u fires) and input N(m, s^2), densities
obey  pi'(y) = integral N(y; F(x) + m, s^2) pi(x) dx.  F is smooth on either side of the
threshold and the kernel is Gaussian, so Gauss-Legendre quadrature on the two sides turns
the operator into a small matrix with spectral accuracy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from quadspike.errors import QuadspikeError
from quadspike.neurons.numbers import evaluated

Array = NDArray[np.float64]
_MOST_NODES = 1500
_LOST = 1e-9
"""The probability that may lie beyond the grid."""
_STRETCHES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""How much farther grids reach, one after the other, where that is too much."""


@dataclass(frozen=True, eq=False)
class MembraneDensity:
    """A density on quadrature nodes, as a mixture of Gaussians of width `input_std`.

    `centers` are where each node is carried before noise, `mass` what it holds, so every
    statistic is exact in the noise and only quadrature is approximate.

    >>> from quadspike import QIF
    >>> density = QIF().density()
    >>> round(density.rate, 3)
    0.186
    """

    threshold: float
    centers: Array
    mass: Array
    input_std: float

    @classmethod
    def stationary(
        cls,
        neuron: Any,
        p: Any,
        input_mean: float,
        input_std: float,
        nodes: int = 300,
    ) -> MembraneDensity:
        """The density that one more step of a neuron (or of its class) leaves unchanged."""
        there, rest = (evaluated(neuron.advance, 0.0, 0.0, x, p=p) for x in (1.0, 0.0))
        gain = float(there - rest)  # some scale their input
        input_mean, input_std = gain * input_mean, gain * input_std
        for stretch in _STRETCHES:
            x, weight, centers, kernel = _grid(neuron, p, input_mean, input_std, nodes, stretch)
            # The columns of `kernel * weight` are probabilities; its fixed vector is the density.
            system = np.eye(len(x)) - kernel * weight + weight
            pi = np.linalg.solve(system, np.ones(len(x))).clip(0)  # rounded, some are below
            density = cls(float(p.u_th), centers, pi * weight / (pi @ weight), input_std)
            beyond = _ndtr((x.min() - centers) / input_std) + _ndtr((centers - x.max()) / input_std)
            if beyond @ density.mass < _LOST:
                return density
        raise _spreads(input_std)

    def pdf(self, u: Array | float) -> Array:
        """The density at `u`."""
        z = (np.asarray(u, dtype=np.float64)[..., None] - self.centers) / self.input_std
        return np.asarray(_gauss(z) @ self.mass / self.input_std)

    def below(self, u: float) -> float:
        """The probability that the membrane is below `u`."""
        return float(_ndtr((u - self.centers) / self.input_std) @ self.mass)

    def share(self, low: float, high: float) -> float:
        """The probability that the membrane lies in `[low, high]`."""
        return self.below(high) - self.below(low)

    @property
    def mean(self) -> float:
        return float(self.centers @ self.mass)

    @property
    def std(self) -> float:
        spread = (self.centers - self.mean) ** 2 @ self.mass
        return math.sqrt(float(spread) + self.input_std**2)

    @property
    def rate(self) -> float:
        """The firing rate: the probability of a spike in a step."""
        return 1.0 - self.below(self.threshold)


def _grid(
    neuron: Any, p: Any, mean: float, std: float, nodes: int, stretch: float
) -> tuple[Array, Array, Array, Array]:
    """Nodes, weights, where each node is carried by one step without noise, and from where noise
    spreads it over all nodes, `[to, from]`."""
    if not (math.isfinite(std) and std > 0 and math.isfinite(mean)):
        raise QuadspikeError(f"the input needs a finite mean and std > 0, got {mean}, {std}")

    def carry(u: Array) -> Array:
        fired = evaluated(neuron.fire, u, p=p)
        return evaluated(neuron.advance, u, fired, 0.0, p=p) + mean

    reach = 9 * std
    low = p.u_th - reach
    for _ in range(3):  # what can be reached from below the threshold, and from there again
        low = min(low, float(carry(np.linspace(low, p.u_th, 2001)).min()) - reach)
    low = p.u_th - stretch * (p.u_th - low)
    high = p.u_th + reach + max(0.0, float(carry(np.linspace(low, p.u_th, 2001)).max()) - p.u_th)
    wide = p.u_th - low
    if np.ptp(carry(np.linspace(p.u_th, high, 2001))) > 0:  # a spike leaves some of the membrane
        for _ in range(3):
            high = max(high, float(carry(np.linspace(p.u_th, high, 2001)).max()) + reach)
        high = p.u_th + stretch * (high - p.u_th)
        wide = max(wide, high - p.u_th)
    nodes = max(nodes, math.ceil(4 * wide / std))
    if nodes > _MOST_NODES:
        raise _spreads(std)
    node, weight = np.polynomial.legendre.leggauss(nodes)
    edges = [(low, p.u_th), (p.u_th, high)]
    x = np.concatenate([(b - a) / 2 * node + (a + b) / 2 for a, b in edges])
    w = np.concatenate([(b - a) / 2 * weight for a, b in edges])
    centers = carry(x)
    return x, w, centers, _gauss((x[:, None] - centers[None, :]) / std) / std


def _spreads(std: float) -> QuadspikeError:
    return QuadspikeError(
        f"with input of spread {std:g} the membrane spreads too far from its threshold for an "
        "exact density: it hardly leaks; simulate it instead"
    )


def _ndtr(z: Array) -> Array:
    return np.asarray(torch.special.ndtr(torch.from_numpy(z)))


def _gauss(z: Array) -> Array:
    return np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
