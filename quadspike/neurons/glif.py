"""The gated leaky integrate-and-fire neuron: how it leaks, integrates and resets is learned."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import nn

from quadspike.errors import QuadspikeError, check_name
from quadspike.neurons.base import Neuron
from quadspike.neurons.numbers import logit
from quadspike.surrogates import Rectangle, Surrogate

_START = {
    "alpha": 0.55,
    "beta": 0.65,
    "gamma": 0.55,
    "tau": 0.25,
    "u_th": 0.5,
    "leak": 0.0625,
    "reset": 0.5,
    "conductance": 0.5,
}


class Constants(NamedTuple):
    """What is left of the gates: six numbers a channel, and one of them may vary with time."""

    keep: Any
    """1 - alpha (1 - tau): what one step leaves of the membrane."""
    gain: Any
    """1 - beta (1 - conductance): what reaches the membrane of the input."""
    drop: Any
    """(1 - alpha) leak: what is subtracted in every step."""
    cut: Any
    """gamma: the share of the membrane that a spike resets."""
    back: Any
    """(1 - gamma) reset: what a spike subtracts."""
    u_th: Any


class GLIF(Neuron):
    """`u(t+1) = (1 - alpha (1 - tau)) u (1 - gamma o) - (1 - alpha) leak
    + (1 - beta (1 - conductance(t))) I - (1 - gamma) reset o`,  `o = [u >= u_th]`.

    Three gates: alpha from a linear to an exponential leak, beta from all input to a
    conductance's share, gamma from a soft to a hard reset. All eight are sigmoids of learned
    logits, per channel once a soma has fitted the neuron to its channels, the conductance also
    per step where the number of steps is known. With alpha = 1, beta = 0, gamma = 1 it is a LIF.

    >>> import torch
    >>> GLIF()(torch.tensor([[0.5], [0.7]])).tolist()
    [[0.0], [1.0]]
    >>> neuron = GLIF()
    >>> neuron.fit(channels=8, timesteps=4)
    >>> neuron.conductance_logit.shape
    torch.Size([4, 8])
    """

    name = "glif"
    per_step = "learns a conductance for each step"
    macs_per_step = 2
    learned = tuple(f"{name}_logit" for name in _START)

    u_th_logit: Any

    def __init__(
        self,
        *,
        surrogate: Surrogate | str | dict[str, Any] | None = None,
        detach_reset: bool = False,
        **logits: Any,
    ) -> None:
        super().__init__()
        for name in logits:
            check_name("logit of GLIF", name, self.learned)
        start = {f"{name}_logit": logit(value) for name, value in _START.items()}
        self._hold(surrogate or Rectangle(), detach_reset, **{**start, **logits})

    @classmethod
    def from_values(cls, **values: Any) -> GLIF:
        """The neuron that starts with these gates and parameters, each in [0, 1].

        >>> round(GLIF.from_values(gamma=1.0, u_th=0.75).u_th.item(), 6)
        0.75
        """
        options: dict[str, Any] = {}
        for name, value in values.items():
            if name in _START and not 0 <= value <= 1:
                raise QuadspikeError(f"GLIF needs {name} in [0, 1], got {value}")
            options |= {f"{name}_logit": logit(value)} if name in _START else {name: value}
        return cls(**options)

    def fit(self, channels: int, timesteps: int | None) -> None:
        for name in self.learned:
            value = getattr(self, name)
            if value.ndim == 0:
                steps = timesteps if name == "conductance_logit" else None
                shape = (channels,) if steps is None else (steps, channels)
                setattr(self, name, nn.Parameter(value.detach().expand(shape).clone()))

    @staticmethod
    def advance(u: Any, o: Any, x: Any, p: Any) -> Any:
        return p.keep * u * (1 - p.cut * o) + p.gain * x - p.back * o - p.drop

    @staticmethod
    def advance_partials(u: Any, o: Any, x: Any, p: Any) -> tuple[Any, ...]:
        left = 1 - p.cut * o
        kept = p.keep * u
        return p.keep * left, -p.cut * kept - p.back, p.gain, u * left, x, -1.0, -kept * o, -o, 0.0

    def constants(self) -> Constants:
        *logits, conductance_logit = (getattr(self, name) for name in self.learned)
        # Together, since a GPU takes longer to start on so few numbers than to do them.
        together = torch.stack(torch.broadcast_tensors(*logits)).sigmoid()
        alpha, beta, gamma, tau, u_th, leak, reset = together.unbind()
        conductance = conductance_logit.sigmoid()
        return Constants(
            keep=1 - alpha * (1 - tau),
            gain=1 - beta * (1 - conductance),
            drop=(1 - alpha) * leak,
            cut=gamma,
            back=(1 - gamma) * reset,
            u_th=u_th,
        )

    @property
    def u_th(self) -> Any:
        """The firing threshold, between 0 and 1."""
        return self.u_th_logit.sigmoid()

    @classmethod
    def parameter_names(cls) -> tuple[str, ...]:
        return cls.learned

    def _two_step_statistics(self) -> tuple[Any, Any]:
        p = self._detached_constants()
        # Each step has its own gain, and the step before the first that of the first.
        before = torch.cat([p.gain[:1], p.gain[:-1]]) if p.gain.ndim == 2 else p.gain
        variance = p.gain * p.gain + p.keep * p.keep * before * before
        return -p.drop * (1 + p.keep), p.u_th * variance**0.5
