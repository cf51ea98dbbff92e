"""The package beside the NumPy statements: the same layer made twice, and their comparison."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from quadspike import QuadspikeError, Soma
from quadspike.call import Call
from quadspike.randomness import Key
from tests.equations import qif, surrogates
from tests.equations.glif import GLIF
from tests.equations.lif import LIF, LSG, PLIF
from tests.equations.qif import QIF
from tests.equations.recursion import Array, Gradients, Neuron, Slope, Trace, sigma
from tests.equations.ternary import Ternary

SHAPE = (4, 3, 5, 2, 2)
STEPS, BATCH, CHANNELS = SHAPE[:3]
CLOSE = {"rtol": 1e-10, "atol": 1e-12}
QUARTER_LIF = LIF(0.25, 0.5)
backends = pytest.mark.parametrize("backend", ["reference", "vectorised"])


@dataclass(frozen=True)
class Case:
    """A neuron's statement, from its learned values by the statement's names."""

    truth: Callable[..., Neuron]
    surrogate: Callable[[dict[str, Any]], Slope]
    """Its own surrogate, given all values."""
    names: dict[str, str] = field(default_factory=dict)
    """The package's learned parameters, and what the statement calls them."""
    start: dict[str, float] = field(default_factory=dict)
    detach_reset: bool = False


def _box(values: dict[str, Any]) -> Slope:
    return surrogates.rectangle(0.5)


def _qif_window(values: dict[str, Any]) -> Slope:
    p = {name: float(values[name]) for name in ("a", "u1", "u2", "u_th")}
    return surrogates.window(*qif.statistics(**p), p["u_th"], "threshold")


def _straight_through(values: dict[str, Any]) -> Slope:
    return surrogates.rectangle(1.0)


_GLIF = {
    "alpha_logit": "A",
    "beta_logit": "B",
    "gamma_logit": "G",
    "tau_logit": "tau",
    "u_th_logit": "u_th",
    "leak_logit": "leak",
    "reset_logit": "u_re",
    "conductance_logit": "g",
}
_GLIF_START = {name: float(value) for name, value in GLIF.at_start().values.items()}
_PAPER = {"a": 0.25, "u1": 0.0, "u2": 0.5, "u_th": 0.5}
CASES = {
    "qif": Case(QIF, _qif_window),
    "lif": Case(LIF, _box),
    "plif": Case(PLIF, lambda _: surrogates.arctan(2.0), {"w": "w"}, {"w": 0.0}, detach_reset=True),
    "glif": Case(GLIF, _box, _GLIF, _GLIF_START),
    "lsg": Case(
        LSG,
        lambda v: surrogates.learned_width(float(sigma(v["b"])), 0.5),
        {"b": "b"},
        {"b": float(LSG().values["b"])},
    ),
    "ternary": Case(Ternary, _straight_through),
    "ternary-trained": Case(Ternary, _straight_through, {"alpha": "alpha"}, {"alpha": 1.0}),
    "qif-learned": Case(QIF, _qif_window, {name: name for name in _PAPER}, _PAPER),
}


def drawn(seed: int, spread: float = 0.8) -> tuple[Array, Array]:
    """Currents, and the weights of a loss `sum(weights * out)`."""
    rng = np.random.default_rng(seed)
    return rng.normal(0, spread, SHAPE), rng.normal(size=SHAPE)


@torch.no_grad()
def stirred(module: nn.Module, size: float = 0.2) -> None:
    """Move every parameter away from where it starts, in float64."""
    generator = torch.Generator().manual_seed(1)
    for parameter in module.double().parameters():
        noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        parameter += size * noise


def learned(module: nn.Module) -> dict[str, Array]:
    """The values of its parameters, by name."""
    return {name: p.detach().double().numpy() for name, p in module.named_parameters()}


def layer(backend: str, **options: Any) -> Soma:
    """A soma in float64 with this backend, or the reference where it rightly refuses."""
    soma = Soma(CHANNELS, timesteps=STEPS, **options).double()
    auto = soma.explain("cpu", torch.float64)
    soma.backend = backend
    if backend == "vectorised" and auto.backend == "reference":
        assert auto.reason
        with pytest.raises(QuadspikeError, match=re.escape(auto.reason)):
            soma(torch.zeros(SHAPE, dtype=torch.float64))
        soma.backend = "reference"
    return soma


@dataclass(frozen=True)
class Outcome:
    out: Array
    x: Array
    parameters: dict[str, Array]


def outcome(soma: Soma, x: Array, weights: Array, **call: Any) -> Outcome:
    """What the package computes: output, and gradients of `sum(weights * out)`."""
    given = torch.tensor(x, requires_grad=True)
    soma.zero_grad()
    trip = Call(STEPS, BATCH, key=Key(seed=3, step=0), **call)
    out = soma(given.flatten(0, 1), trip).view(SHAPE)
    (out * torch.tensor(weights)).sum().backward()
    assert given.grad is not None
    grads = {name: p.grad.numpy() for name, p in soma.named_parameters() if p.grad is not None}
    return Outcome(out.detach().numpy(), given.grad.numpy(), grads)


def assert_same(
    ours: Outcome, truth: Trace, gradients: Gradients, names: dict[str, str] | None = None
) -> None:
    """Equal outputs and input gradients, and those of the neuron's parameters by `names`."""
    np.testing.assert_allclose(ours.out, truth.out, **CLOSE)
    np.testing.assert_allclose(ours.x, gradients.x, **CLOSE)
    for mine, theirs in (names or {}).items():
        expected = gradients.parameters[theirs]
        got = ours.parameters[f"neuron.{mine}"].reshape(expected.shape)
        np.testing.assert_allclose(got, expected, **CLOSE)
