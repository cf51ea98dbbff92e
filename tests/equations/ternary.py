"""Ternary spikes: -1, 0 or 1, and a learned height."""

from __future__ import annotations

import numpy as np

from tests.equations.recursion import Neuron


class Ternary(Neuron):
    """`u_t = beta u (1 - |o|) + x`, `o = sign(u)` where `|u| >= u_th`, else 0.

    The next layer sees alpha o, the reset o. The excess is u itself: the gradient passes
    straight through where |u| <= 1.
    """

    def __init__(self, beta=0.25, u_th=0.5, alpha=1.0):
        super().__init__(beta=beta, alpha=alpha)
        self.u_th = u_th

    def advance(self, u, o, x, p):
        return p.beta * u * (1 - np.abs(o)) + x

    def partials(self, u, o, x, p):
        silent = 1 - np.abs(o)
        return p.beta * silent, -p.beta * u * np.sign(o), 1.0, {"beta": u * silent}

    def threshold(self, p):
        return 0.0, {}

    def emitted(self, p):
        return p.alpha, {"alpha": 1.0}

    def step(self, v):
        return np.sign(v) * (np.abs(v) >= self.u_th)
