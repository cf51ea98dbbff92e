"""The neuron of LSG: a LIF whose learned decay also sets the width of its surrogate."""

from __future__ import annotations

from typing import Any

from quadspike.neurons.base import Neuron
from quadspike.neurons.lif import LIF, Constants
from quadspike.neurons.numbers import check_above_rest, logit
from quadspike.surrogates import LearnedWidth, Surrogate

_B = logit(0.2)


class LSG(Neuron):
    """`u(t+1) = beta u (1 - o) + I`,  `beta = sigmoid(b)`,  `o = [u >= u_th]`.

    One `b` a layer is learned, from beta = 0.2 on. With input N(0, u_th^2) the membrane spreads
    by `u_th sqrt(1 + beta^2)`, and the surrogate reaches as far on either side of the threshold;
    its width follows beta and passes no gradient to it.

    >>> import torch
    >>> round(LSG().beta.item(), 6), LSG()(torch.tensor([[0.4], [0.45]])).tolist()
    (0.2, [[0.0], [1.0]])
    """

    name = "lsg"
    macs_per_step = 1
    learned = ("b",)

    b: Any
    u_th: Any

    def __init__(
        self,
        b: Any = _B,
        u_th: Any = 0.5,
        surrogate: Surrogate | str | dict[str, Any] | None = None,
        detach_reset: bool = False,
    ) -> None:
        super().__init__()
        self._hold(surrogate or LearnedWidth(), detach_reset, b=b, u_th=u_th)
        check_above_rest("LSG", self.u_th)

    @property
    def beta(self) -> Any:
        """The decay, between 0 and 1."""
        return self.b.sigmoid()

    advance = staticmethod(LIF.advance)
    advance_partials = staticmethod(LIF.advance_partials)

    def constants(self) -> Constants:
        return Constants(self.beta, self.u_th, 0.0)

    @classmethod
    def parameter_names(cls) -> tuple[str, ...]:
        return ("b", "u_th")

    _two_step_statistics = LIF._two_step_statistics
