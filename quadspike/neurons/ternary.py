"""Neurons whose spikes have a sign."""

from __future__ import annotations

from typing import Any, NamedTuple

from quadspike.errors import QuadspikeError
from quadspike.neurons.base import Neuron
from quadspike.neurons.lif import LIF
from quadspike.neurons.numbers import everywhere, show
from quadspike.surrogates import Rectangle, Surrogate


class Constants(NamedTuple):
    """What the equation reads."""

    beta: Any
    u_th: Any


class Ternary(Neuron):
    """`u(t+1) = beta u (1 - |o|) + I`,  `o = [u >= u_th] - [u <= -u_th]`.

    The gradient passes the spike unchanged where |u| <= 1: the surrogate is centred on 0, and a
    threshold learns nothing. Input without negative values makes it a LIF.

    >>> import torch
    >>> Ternary()(torch.tensor([[0.7, 0.4, -0.5]])).tolist()
    [[1.0, 0.0, -1.0]]
    """

    name = "ternary"
    macs_per_step = 1

    beta: Any
    u_th: Any

    def __init__(
        self,
        beta: Any = 0.25,
        u_th: Any = 0.5,
        surrogate: Surrogate | str | dict[str, Any] | None = None,
        detach_reset: bool = False,
    ) -> None:
        super().__init__()
        self._hold(surrogate or Rectangle(half_width=1.0), detach_reset, beta=beta, u_th=u_th)
        if not everywhere((self.beta >= 0) & (self.beta <= 1)):
            raise QuadspikeError(f"{self.name} needs 0 <= beta <= 1, got beta={show(self.beta)}")
        if not everywhere(self.u_th > 0):
            raise QuadspikeError(
                f"{self.name} fires at u_th and at -u_th and needs u_th > 0, got {show(self.u_th)}"
            )

    @staticmethod
    def advance(u: Any, o: Any, x: Any, p: Any) -> Any:
        return p.beta * u * (1 - abs(o)) + x

    @staticmethod
    def advance_partials(u: Any, o: Any, x: Any, p: Any) -> tuple[Any, ...]:
        silent = 1 - abs(o)
        return p.beta * silent, -p.beta * u * o, 1.0, u * silent, 0.0  # o is its own sign

    @staticmethod
    def excess(u: Any, p: Any) -> Any:
        return u

    @staticmethod
    def excess_partials(u: Any, p: Any) -> tuple[Any, ...]:
        return 1.0, 0.0

    @staticmethod
    def fire(u: Any, p: Any) -> Any:
        return (u >= p.u_th).to(u.dtype) - (u <= -p.u_th).to(u.dtype)

    def constants(self) -> Any:
        return Constants(self.beta, self.u_th)

    @property
    def origin(self) -> Any:
        return 0.0

    @property
    def edges(self) -> tuple[Any, ...]:
        return -self.threshold, self.threshold

    @classmethod
    def parameter_names(cls) -> tuple[str, ...]:
        return ("beta", "u_th")

    _two_step_statistics = LIF._two_step_statistics

    def _scalar_constants(self) -> Any:
        raise QuadspikeError(
            f"the exact density is for neurons with one threshold, and {self.name!r} has two: "
            "use voltage_statistics(), or simulate it"
        )


class TrainedConstants(NamedTuple):
    """Those of `Ternary`, and what a spike is worth to the next layer."""

    beta: Any
    u_th: Any
    emitted: Any


class TrainedTernary(Ternary):
    """`Ternary` that emits `alpha o`: one learned `alpha` a layer, from 1 on.

    The reset sees the plain o. A linear layer that reads the spikes can take alpha into its
    weights, so it costs no multiplication.

    >>> import torch
    >>> TrainedTernary(alpha=0.5)(torch.tensor([[0.7, 0.4, -0.5]])).tolist()
    [[0.5, 0.0, -0.5]]
    """

    name = "ternary-trained"
    learned = ("alpha",)

    alpha: Any

    def __init__(
        self,
        beta: Any = 0.25,
        u_th: Any = 0.5,
        alpha: Any = 1.0,
        surrogate: Surrogate | str | dict[str, Any] | None = None,
        detach_reset: bool = False,
    ) -> None:
        super().__init__(beta, u_th, surrogate, detach_reset)
        self._hold(self.surrogate, detach_reset, alpha=alpha)

    @staticmethod
    def advance_partials(u: Any, o: Any, x: Any, p: Any) -> tuple[Any, ...]:
        silent = 1 - abs(o)
        return p.beta * silent, -p.beta * u * o, 1.0, u * silent, 0.0, 0.0

    def constants(self) -> Any:
        return TrainedConstants(self.beta, self.u_th, self.alpha)

    @classmethod
    def parameter_names(cls) -> tuple[str, ...]:
        return ("beta", "u_th", "alpha")
