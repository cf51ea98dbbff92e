"""The parametric leaky integrate-and-fire neuron: a LIF that learns its time constant."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from quadspike.errors import QuadspikeError
from quadspike.neurons.base import Neuron
from quadspike.neurons.numbers import check_above_rest, detached
from quadspike.surrogates import ArcTan, Surrogate


class Constants(NamedTuple):
    """What the equation reads; `rate` is 1/tau."""

    rate: Any
    u_th: Any


class PLIF(Neuron):
    """`u(t+1) = (1 - 1/tau) u (1 - o) + I / tau`,  `1/tau = sigmoid(w)`,  `o = [u >= u_th]`.

    One `w` a layer is learned, from tau = 2 on. The input is scaled by 1/tau as well, so behind
    tdBN the membrane spreads less than that of a LIF. Its authors fire at 1 and do not normalise
    by the threshold; here u_th is 0.5 as for every other neuron. No gradient passes the reset.

    >>> import torch
    >>> neuron = PLIF()
    >>> neuron.tau.item(), neuron(torch.tensor([[0.8], [0.6]])).tolist()
    (2.0, [[0.0], [1.0]])
    """

    name = "plif"
    macs_per_step = 2
    learned = ("w",)

    w: Any
    u_th: Any

    def __init__(
        self,
        w: Any = 0.0,
        u_th: Any = 0.5,
        surrogate: Surrogate | str | dict[str, Any] | None = None,
        detach_reset: bool = True,
    ) -> None:
        super().__init__()
        self._hold(surrogate or ArcTan(2.0), detach_reset, w=w, u_th=u_th)
        check_above_rest("PLIF", self.u_th)

    @classmethod
    def from_tau(cls, tau: float, **others: Any) -> PLIF:
        """The neuron that starts with time constant `tau`: w = -ln(tau - 1).

        >>> round(PLIF.from_tau(4.0).constants().rate.item(), 6)
        0.25
        """
        if not 1 < tau < math.inf:
            raise QuadspikeError(f"PLIF needs a finite tau > 1, got tau={tau}")
        return cls(w=-math.log(tau - 1), **others)

    @property
    def tau(self) -> Any:
        """The time constant, in steps."""
        return 1 / self.w.sigmoid()

    @staticmethod
    def advance(u: Any, o: Any, x: Any, p: Any) -> Any:
        return (1 - p.rate) * u * (1 - o) + p.rate * x

    @staticmethod
    def advance_partials(u: Any, o: Any, x: Any, p: Any) -> tuple[Any, ...]:
        silent, keep = 1 - o, 1 - p.rate
        return keep * silent, -keep * u, p.rate, x - u * silent, 0.0

    def constants(self) -> Constants:
        return Constants(self.w.sigmoid(), self.u_th)

    @classmethod
    def parameter_names(cls) -> tuple[str, ...]:
        return ("w", "u_th")

    def _two_step_statistics(self) -> tuple[Any, Any]:
        rate = detached(self.w).sigmoid()
        return 0.0, self.threshold * rate * (1 + (1 - rate) ** 2) ** 0.5
