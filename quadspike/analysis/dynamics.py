"""The mathematics of the recurrence u(t+1) = f(u) + I with f(u) = a (u - u1)(u - u2).

Fixed points, the three regions, orbits without reset, simulations with it, and how far
Theorem 1 is from the exact density. Everything is float64 and for one set of parameters.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from quadspike.errors import QuadspikeError, QuadspikeWarning
from quadspike.neurons import QIF, MembraneDensity, Neuron
from quadspike.neurons.numbers import evaluated

Array = NDArray[np.float64]
Stability = Literal["stable", "unstable", "undecided"]

_NODES = 100  # a side: the density's mean and spread to 1e-9, in a tenth of the usual time


@dataclass(frozen=True)
class FixedPoint:
    """A membrane that maps to itself without input, and the slope of f there."""

    u: float
    slope: float

    @property
    def stability(self) -> Stability:
        """By |slope| < 1 or > 1; at 1 the slope alone does not decide."""
        if math.isclose(abs(self.slope), 1.0, rel_tol=1e-9):
            return "undecided"
        return "stable" if abs(self.slope) < 1 else "unstable"

    @property
    def stable(self) -> bool:
        return self.stability == "stable"


def fixed_points(neuron: QIF) -> tuple[FixedPoint, FixedPoint]:
    """The resting point u_r and the critical point u_c, with g(u) = a (2 u - u1 - u2).

    >>> rest, critical = fixed_points(QIF())
    >>> rest.u, rest.slope, rest.stability
    (0.0, -0.125, 'stable')
    >>> critical.u, critical.slope, critical.stability
    (4.5, 2.125, 'unstable')
    """
    p = _qif_constants(neuron)
    rest, critical = (
        FixedPoint(u, p.a * (2 * u - p.u_sum))
        for u in (number(neuron.resting), number(neuron.critical))
    )
    return rest, critical


class Region(NamedTuple):
    """An interval of membranes that f treats alike."""

    name: Literal["red", "blue", "green"]
    low: float
    high: float


def regions(neuron: QIF) -> tuple[Region, ...]:
    """Red below both roots, blue between them, green above, from left to right.

    With complex roots f never crosses zero: there is no blue region, and red and green
    meet at the vertex, where f is least.

    >>> [(region.name, region.low, region.high) for region in regions(QIF())]
    [('red', -inf, 0.0), ('blue', 0.0, 0.5), ('green', 0.5, inf)]
    """
    vertex = _qif_constants(neuron).u_sum / 2
    if not neuron.has_real_roots:
        return Region("red", -math.inf, vertex), Region("green", vertex, math.inf)
    low, high = sorted((number(neuron.u1), number(neuron.u2)))
    return (
        Region("red", -math.inf, low),
        Region("blue", low, high),
        Region("green", high, math.inf),
    )


def u_min(neuron: QIF) -> float:
    """The least f(u): a u1 u2 - a (u1 + u2)^2 / 4, which is -a (u1 - u2)^2 / 4.

    >>> u_min(QIF())
    -0.015625
    """
    p = _qif_constants(neuron)
    return float(p.a * p.u_prod - p.a * p.u_sum**2 / 4)


def step(neuron: Neuron, u: ArrayLike, input: float = 0.0) -> Array:
    """The membrane after one step without reset.

    >>> float(step(QIF(), -1.0))
    0.375
    """
    values = np.asarray(u, dtype=np.float64)
    return evaluated(neuron.advance, values, 0.0, input, p=constants(neuron))


def orbit(neuron: Neuron, start: float, steps: int, input: float = 0.0) -> Array:
    """`start` and the `steps` membranes after it under a constant input, without reset.

    A membrane that runs away is `inf` once floats no longer hold it.

    >>> orbit(QIF(), 0.25, 2).tolist()
    [0.25, -0.015625, 0.00201416015625]
    """
    if steps < 0 or not math.isfinite(start) or not math.isfinite(input):
        raise QuadspikeError(
            "an orbit needs a finite start and input and steps >= 0, "
            f"got start={start}, input={input}, steps={steps}"
        )
    p = constants(neuron)
    path = np.full(steps + 1, np.inf)
    path[0] = start
    for t in range(steps):
        following = float(evaluated(neuron.advance, path[t], 0.0, input, p=p))
        if not math.isfinite(following):
            break
        path[t + 1] = following
    return path


class Simulation(NamedTuple):
    """The membrane at each step, before any reset, and the spikes; shaped as the input."""

    membranes: Array
    spikes: Array


def simulate(neuron: Neuron, x: ArrayLike) -> Simulation:
    """Run `neuron` from rest over an input `[T]` or `[T, N]`, reset included.

    The spikes are those of `neuron(x)` in float64; the membranes are what it hides.

    >>> simulate(QIF(), [0.4, 0.6]).spikes.tolist()
    [0.0, 1.0]
    """
    inputs = np.asarray(x, dtype=np.float64)
    if inputs.ndim not in (1, 2) or len(inputs) == 0:
        raise QuadspikeError(f"simulate needs an input [T] or [T, N], got shape {inputs.shape}")
    p = constants(neuron)
    currents = torch.from_numpy(inputs).reshape(len(inputs), -1)
    u = o = torch.zeros_like(currents[0])
    steps = []
    with torch.no_grad():
        for current in neuron.mix(currents.unbind()):
            u = neuron.advance(u, o, current, p)
            o = neuron.fire(u, p).to(u.dtype)
            steps.append(torch.stack([u, getattr(p, "emitted", 1.0) * o]))
    membranes, spikes = torch.stack(steps, 1).reshape(2, *inputs.shape).numpy()
    return Simulation(membranes, spikes)


@dataclass(frozen=True)
class TheoremError:
    """How far Theorem 1 is from the exact density, `[len(u2), len(a)]`, NaN if not allowed."""

    a: Array
    u2: Array
    u_th: float
    mean: Array
    """(mean of Theorem 1 - exact mean) / exact standard deviation."""
    std: Array
    """(standard deviation of Theorem 1 - exact) / exact."""


def theorem_error(a: ArrayLike, u2: ArrayLike, u_th: float = 0.5) -> TheoremError:
    """Theorem 1 against the stationary density over a plane of (a, u2), with u1 = 0.

    The input is N(0, u_th^2); the exact density includes the reset, the theorem does not.

    >>> error = theorem_error([0.25], [0.5, 0.6])
    >>> error.std.round(4).tolist()
    [[0.0029], [nan]]
    """
    if not (math.isfinite(u_th) and u_th > 0):
        raise QuadspikeError(f"the input's spread is u_th, so it must be > 0; got u_th={u_th}")
    a_axis = np.atleast_1d(np.asarray(a, dtype=np.float64))
    u2_axis = np.atleast_1d(np.asarray(u2, dtype=np.float64))
    error = np.full((2, len(u2_axis), len(a_axis)), np.nan)
    with warnings.catch_warnings():  # a plane may well cross neurons whose rest is unstable
        warnings.simplefilter("ignore", QuadspikeWarning)
        for row, column in np.ndindex(error.shape[1:]):
            try:
                neuron = QIF(a=float(a_axis[column]), u2=float(u2_axis[row]), u_th=u_th)
            except QuadspikeError:
                continue
            exact = MembraneDensity.stationary(neuron, constants(neuron), 0.0, u_th, nodes=_NODES)
            mean, std = neuron.voltage_statistics()
            error[:, row, column] = (mean - exact.mean) / exact.std, (std - exact.std) / exact.std
    return TheoremError(a_axis, u2_axis, u_th, mean=error[0], std=error[1])


def constants(neuron: Neuron) -> Any:
    """The neuron's constants as plain floats."""
    p = neuron.constants()
    if any(isinstance(value, Tensor) and value.numel() > 1 for value in p):
        raise QuadspikeError(
            f"dynamics are for one set of parameters; this {neuron.name!r} has them per channel "
            "or step: make a neuron with one channel's numbers"
        )
    return type(p)(*map(number, p))


def number(value: Any) -> float:
    """A parameter, learned or not, as a plain float."""
    return float(value.detach() if isinstance(value, Tensor) else value)


def _qif_constants(neuron: QIF) -> Any:
    if not isinstance(neuron, QIF):
        raise QuadspikeError(f"only a QIF has this map; got {type(neuron).__name__}")
    return constants(neuron)
