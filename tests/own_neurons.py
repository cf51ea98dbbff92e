"""Neurons and surrogates such as a user may write."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from torch import nn

from quadspike.neurons import LIF
from quadspike.surrogates import Surrogate

HALF = 0.5


class Constants(NamedTuple):
    beta: Any
    u_th: Any
    u_reset: Any
    k: Any


class Exponential(LIF):
    """`u(t+1) = (beta u + k exp((u - u_th) / k)) (1 - o) + u_reset o + I`, methods on a state."""

    name = "exponential"

    def constants(self):
        return Constants(self.beta, self.u_th, self.u_reset, 0.25)

    @staticmethod
    def advance(u, o, x, p):
        return (p.beta * u + p.k * ((u - p.u_th) / p.k).exp()) * (1 - o) + p.u_reset * o + x

    @staticmethod
    def advance_partials(u, o, x, p):
        past, silent = (u - p.u_th) / p.k, 1 - o
        e = past.exp()
        f = p.beta * u + p.k * e
        in_k = (e - e * past) * silent
        return (p.beta + e) * silent, p.u_reset - f, 1.0, u * silent, -e * silent, o, in_k


class Rectified(LIF):
    """A comparison of the state, a square, a number from outside and one of the class."""

    name = "rectified"
    GAIN = 0.75

    @staticmethod
    def advance(u: Any, o: Any, x: Any, p: Any) -> Any:
        """Only what is above 0 stays, squared."""
        stays: Any = (u > 0).to(u.dtype)
        moved = HALF * p.beta * stays * u**2
        moved *= 1 - o
        return moved + p.u_reset * o + Rectified.GAIN * x

    @staticmethod
    def advance_partials(u, o, x, p):
        stays, silent = (u > 0).to(u.dtype), 1 - o
        d_u, f = 2 * HALF * p.beta * u * stays * silent, HALF * u**2 * stays
        return d_u, p.u_reset - p.beta * f, Rectified.GAIN, f * silent, 0.0, o


class Gated(LIF):
    """A method of what a constant that is 0 multiplies."""

    name = "gated"

    @staticmethod
    def advance(u, o, x, p):
        return p.beta * u * (1 - o) + (p.u_reset * o).sigmoid() * o + x

    @staticmethod
    def advance_partials(u, o, x, p):
        gate = (p.u_reset * o).sigmoid()
        slope = gate * (1 - gate)
        in_o = gate + o * p.u_reset * slope - p.beta * u
        return p.beta * (1 - o), in_o, 1.0, u * (1 - o), 0.0, o * o * slope


class Scaled(LIF):
    """A learned constant of the shape that it is given."""

    name = "scaled"

    def __init__(self, shape=(1,)):
        super().__init__()
        self.k = nn.Parameter(torch.full(shape, 0.7))

    def constants(self):
        return Constants(self.beta, self.u_th, self.u_reset, self.k)

    @staticmethod
    def advance(u, o, x, p):
        return p.beta * u * (1 - o) + p.u_reset * o + p.k * x

    @staticmethod
    def advance_partials(u, o, x, p):
        return p.beta * (1 - o), p.u_reset - p.beta * u, p.k, u * (1 - o), 0.0, o, x


class Mixing(LIF):
    """Currents that reach into the next step, of which in_parts says nothing."""

    name = "mixing"

    def mix(self, currents):
        last = 0.0
        for current in currents:
            last = current + 0.5 * last
            yield last


class Borrowing(LIF):
    """Lines of another neuron called."""

    name = "borrowing"

    @staticmethod
    def advance(u, o, x, p):
        return LIF.advance(u, o, x, p) + 0.0

    @staticmethod
    def advance_partials(u, o, x, p):
        return LIF.advance_partials(u, o, x, p)


class Unnamed(LIF):
    """A line without a def."""

    name = "unnamed"
    advance = staticmethod(lambda u, o, x, p: p.beta * u * (1 - o) + p.u_reset * o + x)
    advance_partials = staticmethod(LIF.advance_partials)


@dataclass(frozen=True)
class Own(Surrogate):
    def constants(self, neuron):
        return Constants(2.0, 0.0, 0.0, 0.0)

    def reach(self, neuron):
        return -0.5, 0.5


class Tangent(Own):
    name: ClassVar[str] = "own-tanh"

    @staticmethod
    def derivative(v, s):
        w = (s.beta * v).tanh()
        return 1 - w**2


class Waves(Own):
    name: ClassVar[str] = "own-waves"

    @staticmethod
    def derivative(v, s):
        return 1 + (math.pi * v).cos() * 0.5 + v.sin() * 0.1 + (1 + abs(v)).log().sqrt()


class Inside(Own):
    name: ClassVar[str] = "own-inside"

    @staticmethod
    def derivative(v, s):
        inside = (v > -1.0) & (v < 1.0)
        return inside.to(v.dtype) * (-s.beta * v.abs()).exp()
