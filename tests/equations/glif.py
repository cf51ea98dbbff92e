"""GLIF: three gates between the variants of a LIF neuron, all through sigmoids."""

from __future__ import annotations

from tests.equations.recursion import Neuron, logit, sigma


class GLIF(Neuron):
    """Parameters are the logits of A, B, G, tau, u_th, leak, u_re `[C]` and g `[T, C]`.

    I' = x (1 - B (1 - g_t))
    u_t = (1 - A (1 - tau)) u (1 - G o) - (1 - A) leak + I' - (1 - G) u_re o
    """

    @classmethod
    def at_start(cls) -> GLIF:
        """The authors' values, as numbers; the gates are .6, .8, .6 drawn half-way to .5."""
        values = {"A": 0.55, "B": 0.65, "G": 0.55, "tau": 0.25, "u_th": 0.5, "leak": 0.0625}
        return cls(**{name: logit(value) for name, value in values.items()}, u_re=0.0, g=0.0)

    def advance(self, u, o, x, p):
        A, B, G, tau, leak, u_re, g = self._open(p)
        decayed = (1 - A * (1 - tau)) * u * (1 - G * o) - (1 - A) * leak
        return decayed + x * (1 - B * (1 - g)) - (1 - G) * u_re * o

    def partials(self, u, o, x, p):
        A, B, G, tau, leak, u_re, g = self._open(p)
        kept, decay = 1 - G * o, 1 - A * (1 - tau)
        d_values = {
            "A": (A, -(1 - tau) * u * kept + leak),
            "B": (B, -x * (1 - g)),
            "G": (G, -decay * u * o + u_re * o),
            "tau": (tau, A * u * kept),
            "leak": (leak, -(1 - A)),
            "u_re": (u_re, -(1 - G) * o),
            "g": (g, x * B),
        }
        d_logits = {name: y * (1 - y) * partial for name, (y, partial) in d_values.items()}
        return decay * kept, -decay * u * G - (1 - G) * u_re, 1 - B * (1 - g), d_logits

    def threshold(self, p):
        u_th = sigma(p.u_th)
        return u_th, {"u_th": u_th * (1 - u_th)}

    @staticmethod
    def _open(p):
        return tuple(sigma(v) for v in (p.A, p.B, p.G, p.tau, p.leak, p.u_re, p.g))
