"""A neuron over time, and backpropagation through time written out.

    u_t = advance(u_{t-1}, o_{t-1}, x_t)     v_t = u_t - threshold (the excess)
    o_t = step(v_t)                          out_t = emitted o_t

Backward, S(v) stands for the step's derivative and g_* for dL/d*:

    g_o(t) = emitted g_out(t) + g_u(t+1) du_{t+1}/do_t      (second term only if not detached)
    g_u(t) = g_o(t) S(v_t) + g_u(t+1) du_{t+1}/du_t
    g_x(t) = g_u(t) du_t/dx_t
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray
Slope = Callable[[Array], Array]


class Neuron:
    """An equation and its parameters: each a number, `[C]`, or `[T, C]`, by name."""

    def __init__(self, **values: Any) -> None:
        self.values = {name: np.asarray(value, float) for name, value in values.items()}

    def advance(self, u: Array, o: Array, x: Array, p: Any) -> Array:
        raise NotImplementedError

    def partials(self, u: Array, o: Array, x: Array, p: Any) -> tuple[Any, Any, Any, dict]:
        """Derivatives of `advance` in u, o, x, and in the parameters by name."""
        raise NotImplementedError

    def threshold(self, p: Any) -> Any:
        """What the membrane is compared with, and its derivatives by parameter."""
        return p.u_th, {"u_th": 1.0}

    def emitted(self, p: Any) -> Any:
        """What a spike is worth to the next layer, and its derivatives by parameter."""
        return 1.0, {}

    def step(self, v: Array) -> Array:
        return (v >= 0).astype(float)

    def at(self, t: int, like: Array) -> SimpleNamespace:
        """The parameters of one step, shaped against `[B, C, ...]`."""
        return SimpleNamespace(**{k: spread(v, t, like) for k, v in self.values.items()})


class Trace(NamedTuple):
    """`[T, B, C, ...]` each: membranes, excesses, spikes, and what is passed on."""

    u: Array
    v: Array
    o: Array
    out: Array


class Gradients(NamedTuple):
    x: Array
    parameters: dict[str, Array]
    initial: Array
    """In the membrane before the first step, `[B, C, ...]`."""


def forward(
    neuron: Neuron,
    x: Array,
    initial: Any = 0.0,
    membrane: Any = None,
    step: Slope | None = None,
    resets: Array | None = None,
) -> Trace:
    """The neuron from the membrane `initial` and no spike.

    `membrane` normalises what is compared with the threshold, not what is reset. For finite
    differences, `step` can be smooth, and `resets` can hold the spikes that reset constant.
    """
    u, o = np.zeros_like(x[0]) + initial, np.zeros_like(x[0])
    trace = []
    for t, current in enumerate(x):
        p = neuron.at(t, current)
        u = neuron.advance(u, o if resets is None or t == 0 else resets[t - 1], current, p)
        v = (u if membrane is None else membrane.forward(u)) - neuron.threshold(p)[0]
        o = (step or neuron.step)(v)
        trace.append((u, v, o, neuron.emitted(p)[0] * o))
    return Trace(*(np.array(part) for part in zip(*trace, strict=True)))


def backward(
    neuron: Neuron,
    x: Array,
    grad_out: Array,
    slope: Slope,
    detach_reset: bool = False,
    initial: Any = 0.0,
    membrane: Any = None,
    step: Slope | None = None,
    grad_u: Array | None = None,
) -> Gradients:
    """Gradients of `sum(grad_out * out)`, with `slope(v [T, ...])` as the step's derivative.

    `grad_u` is what the loss asks of the membranes themselves.
    """
    u, v, o, _ = forward(neuron, x, initial, membrane, step)
    s = slope(v)
    totals = {name: np.zeros_like(value) for name, value in neuron.values.items()}
    if membrane is not None:
        totals |= {f"membrane.{name}": np.zeros(x.shape[2]) for name in ("weight", "bias")}
    grad_x = np.zeros_like(x)
    back_u, back_o = np.zeros_like(x[0]), np.zeros_like(x[0])  # what step t+1 hands back

    def add(t: int, upstream: Array, partials: dict) -> None:
        for name, partial in partials.items():
            gather(totals[name], t, upstream * partial)

    for t in reversed(range(len(x))):
        p = neuron.at(t, x[t])
        worth, worth_partials = neuron.emitted(p)
        add(t, grad_out[t] * o[t], worth_partials)
        g_v = (worth * grad_out[t] + back_o) * s[t]
        add(t, -g_v, neuron.threshold(p)[1])
        g_u = g_v
        if membrane is not None:
            g_u, inner = membrane.backward(u[t], g_v)
            for name, value in inner.items():
                totals[f"membrane.{name}"] += value
        g_u = g_u + back_u + (0.0 if grad_u is None else grad_u[t])
        before_u = u[t - 1] if t else np.zeros_like(x[0]) + initial
        before_o = o[t - 1] if t else np.zeros_like(x[0])
        d_u, d_o, d_x, d_p = neuron.partials(before_u, before_o, x[t], p)
        grad_x[t] = g_u * d_x
        add(t, g_u, d_p)
        back_u = g_u * d_u
        back_o = np.zeros_like(g_u) if detach_reset else g_u * d_o
    return Gradients(grad_x, totals, back_u)


def spread(value: Array, t: int, like: Array) -> Array:
    """A number, `[C]`, or row `t` of `[T, C]`, shaped against `[B, C, ...]`."""
    chosen = value[t] if value.ndim == 2 else value
    return chosen.reshape(-1, *[1] * (like.ndim - 2)) if chosen.ndim else chosen


def gather(total: Array, t: int, grad: Array) -> None:
    """Add `grad [B, C, ...]` to the gradient of a number, of `[C]`, or of a row of `[T, C]`."""
    place = total[t : t + 1] if total.ndim == 2 else total
    place += grad.sum(tuple(i for i in range(grad.ndim) if i != 1)) if total.ndim else grad.sum()


def sigma(x: Any) -> Any:
    """The logistic function."""
    return 1 / (1 + np.exp(-np.asarray(x, float)))


def logit(y: Any) -> Any:
    """Its inverse."""
    return np.log(np.asarray(y, float) / (1 - np.asarray(y, float)))
