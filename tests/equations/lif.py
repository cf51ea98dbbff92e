"""LIF and the neurons that learn its decay: PLIF and LSG."""

from __future__ import annotations

from tests.equations.recursion import Neuron, logit, sigma


class LIF(Neuron):
    """`u_t = beta u (1 - o) + u_reset o + x`."""

    def __init__(self, beta=0.25, u_th=0.5, u_reset=0.0):
        super().__init__(beta=beta, u_th=u_th, u_reset=u_reset)

    def advance(self, u, o, x, p):
        return p.beta * u * (1 - o) + p.u_reset * o + x

    def partials(self, u, o, x, p):
        return (
            p.beta * (1 - o),
            p.u_reset - p.beta * u,
            1.0,
            {"beta": u * (1 - o), "u_reset": o},
        )


class PLIF(Neuron):
    """`r = u (1 - o) + u_reset o`, `u_t = r + sigma(w) (x - (r - u_reset))`.

    At the start w = -ln(tau - 1), so that sigma(w) = 1 / tau.
    """

    def __init__(self, w=0.0, u_th=0.5, u_reset=0.0):
        super().__init__(w=w, u_th=u_th, u_reset=u_reset)

    def advance(self, u, o, x, p):
        rest = u * (1 - o) + p.u_reset * o
        return rest + sigma(p.w) * (x - (rest - p.u_reset))

    def partials(self, u, o, x, p):
        k = sigma(p.w)
        rest = u * (1 - o) + p.u_reset * o
        return (
            (1 - k) * (1 - o),
            (1 - k) * (p.u_reset - u),
            k,
            {"w": k * (1 - k) * (x - rest + p.u_reset), "u_reset": (1 - k) * o + k},
        )


class LSG(Neuron):
    """LIF with `beta = sigma(b)`; its surrogate's width follows beta without a gradient."""

    def __init__(self, b=None, u_th=0.5):
        super().__init__(b=logit(0.2) if b is None else b, u_th=u_th)

    def advance(self, u, o, x, p):
        return sigma(p.b) * u * (1 - o) + x

    def partials(self, u, o, x, p):
        beta = sigma(p.b)
        return beta * (1 - o), -beta * u, 1.0, {"b": beta * (1 - beta) * u * (1 - o)}
