"""The leaky integrate-and-fire neuron, the common ground of the comparison."""

from __future__ import annotations

from typing import Any, NamedTuple

from quadspike.errors import QuadspikeError
from quadspike.neurons.base import Neuron
from quadspike.neurons.numbers import check_above_rest, detached, everywhere, show
from quadspike.surrogates import Rectangle, Surrogate


class Constants(NamedTuple):
    """What the equation reads."""

    beta: Any
    u_th: Any
    u_reset: Any


class LIF(Neuron):
    """`u(t+1) = beta u (1 - o) + u_reset o + I`,  `o = [u >= u_th]`.

    >>> import torch
    >>> LIF(beta=0.5)(torch.tensor([[0.4], [0.3]])).tolist()
    [[0.0], [1.0]]
    """

    name = "lif"
    macs_per_step = 1

    beta: Any
    u_th: Any
    u_reset: Any

    def __init__(
        self,
        beta: Any = 0.25,
        u_th: Any = 0.5,
        u_reset: Any = 0.0,
        surrogate: Surrogate | str | dict[str, Any] | None = None,
        detach_reset: bool = False,
    ) -> None:
        super().__init__()
        self._hold(surrogate or Rectangle(), detach_reset, beta=beta, u_th=u_th, u_reset=u_reset)
        if not everywhere((self.beta >= 0) & (self.beta <= 1)):
            raise QuadspikeError(f"LIF needs 0 <= beta <= 1, got beta={show(self.beta)}")
        check_above_rest("LIF", self.u_th)

    @staticmethod
    def advance(u: Any, o: Any, x: Any, p: Any) -> Any:
        return p.beta * u * (1 - o) + p.u_reset * o + x

    @staticmethod
    def advance_partials(u: Any, o: Any, x: Any, p: Any) -> tuple[Any, ...]:
        silent = 1 - o
        return p.beta * silent, p.u_reset - p.beta * u, 1.0, u * silent, 0.0, o

    def constants(self) -> Constants:
        return Constants(self.beta, self.u_th, self.u_reset)

    @classmethod
    def parameter_names(cls) -> tuple[str, ...]:
        return ("beta", "u_th", "u_reset")

    def _two_step_statistics(self) -> tuple[Any, Any]:
        beta = detached(self.beta)
        return 0.0, self.threshold * (1 + beta * beta) ** 0.5
