"""QIF, fixed or learned, with what its parameters must obey."""

from __future__ import annotations

import math

from tests.equations.recursion import Neuron


class QIF(Neuron):
    """`f(u) = a (u - u1)(u - u2)`, `u_t = f(u)(1 - o) + u_reset o + x`."""

    def __init__(self, a=0.25, u1=0.0, u2=0.5, u_th=0.5, u_reset=0.0):
        super().__init__(a=a, u1=u1, u2=u2, u_th=u_th, u_reset=u_reset)

    def advance(self, u, o, x, p):
        return p.a * (u - p.u1) * (u - p.u2) * (1 - o) + p.u_reset * o + x

    def partials(self, u, o, x, p):
        silent = 1 - o
        return (
            (2 * p.a * u - p.a * (p.u1 + p.u2)) * silent,
            p.u_reset - p.a * (u - p.u1) * (u - p.u2),
            1.0,
            {
                "a": (u - p.u1) * (u - p.u2) * silent,
                "u1": -p.a * (u - p.u2) * silent,
                "u2": -p.a * (u - p.u1) * silent,
                "u_reset": o,
            },
        )


def statistics(a: float, u1: float, u2: float, u_th: float) -> tuple[float, float]:
    """Mean and spread of the membrane under input N(0, u_th^2)."""
    mean = a * (u_th**2 + u1 * u2)
    variance = u_th**2 * (1 + a**2 * (2 * u_th**2 + (u1 + u2) ** 2))
    return mean, math.sqrt(variance)


def fixed_points(a: float, u1: float, u2: float) -> tuple[float, float]:
    """Rest and critical potential: the roots of a x^2 - (a (u1 + u2) + 1) x + a u1 u2."""
    b = a * (u1 + u2) + 1
    root = math.sqrt(b * b - 4 * a * a * u1 * u2)
    return (b - root) / (2 * a), (b + root) / (2 * a)


def allowed(a: float, u1: float, u2: float, u_th: float, slack: float = 0.0) -> bool:
    """Whether a > 0, the fixed points are real, and max(u1, u2) <= u_th <= u_c."""
    if not (a > 0 and (a * (u1 + u2) + 1) ** 2 - 4 * a * a * u1 * u2 > 0):
        return False
    return max(u1, u2) - slack <= u_th <= fixed_points(a, u1, u2)[1] + slack
