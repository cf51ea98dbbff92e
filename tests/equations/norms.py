"""Normalisation of the current: BN, tdBN, TEBN; and of the membrane: MPBN, with its fold."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tests.equations.recursion import Array


class Norm:
    """`y = weight gain (x - mean) / sqrt(var + eps) + bias` per channel, batch statistics.

    gain 1 is BN, gain eta u_th is tdBN. Channels are axis 2 of `[T, B, C, ...]`; of one
    step's `[B, C, ...]` (MPBN) they are axis 1.
    """

    def __init__(self, weight: Array, bias: Array, gain: Any = 1.0, axis: int = 2, eps=1e-5):
        self.weight, self.bias = np.asarray(weight, float), np.asarray(bias, float)
        self.gain, self.axis, self.eps = gain, axis, eps

    def forward(self, x: Array) -> Array:
        return self._wide(self.gain * self.weight, x) * self._unit(x)[0] + self._wide(self.bias, x)

    def backward(self, x: Array, grad: Array) -> tuple[Array, dict[str, Array]]:
        """Gradients of `sum(grad * forward(x))` in x and in the parameters."""
        unit, deviation = self._unit(x)
        axes = self._others(x)
        g = grad * self._wide(self.gain * self.weight, x)
        centred = g - g.mean(axes, keepdims=True) - unit * (g * unit).mean(axes, keepdims=True)
        return centred / deviation, {
            "weight": self.gain * (grad * unit).sum(axes),
            "bias": grad.sum(axes),
        }

    def statistics(self, x: Array) -> tuple[Array, Array]:
        """The mean and the unbiased variance, which the running averages follow."""
        axes = self._others(x)
        return x.mean(axes), x.var(axes, ddof=1)

    def _unit(self, x: Array) -> tuple[Array, Array]:
        axes = self._others(x)
        deviation = np.sqrt(x.var(axes, keepdims=True) + self.eps)
        return (x - x.mean(axes, keepdims=True)) / deviation, deviation

    def _others(self, x: Array) -> tuple[int, ...]:
        return tuple(i for i in range(x.ndim) if i != self.axis)

    def _wide(self, value: Any, x: Array) -> Array:
        return np.asarray(value).reshape(-1, *[1] * (x.ndim - self.axis - 1))


class TEBN:
    """`y_t = p_t BN(x)_t`, one p `[T]` for the layer, statistics over all steps together."""

    def __init__(self, weight: Array, bias: Array, p: Array):
        self.bn, self.p = Norm(weight, bias), np.asarray(p, float)

    def forward(self, x: Array) -> Array:
        return self._wide(x) * self.bn.forward(x)

    def backward(self, x: Array, grad: Array) -> tuple[Array, dict[str, Array]]:
        g_x, grads = self.bn.backward(x, grad * self._wide(x))
        per_step = (grad * self.bn.forward(x)).sum(tuple(range(1, x.ndim)))
        return g_x, {**grads, "p": per_step}

    def _wide(self, x: Array) -> Array:
        return self.p.reshape(-1, *[1] * (x.ndim - 1))


def running(stats: list[tuple[Array, Array]], momentum: float = 0.1) -> tuple[Array, Array]:
    """Running mean and variance after following each of `stats`, from 0 and 1."""
    mean, var = np.zeros_like(stats[0][0]), np.ones_like(stats[0][1])
    for batch_mean, batch_var in stats:
        mean = (1 - momentum) * mean + momentum * batch_mean
        var = (1 - momentum) * var + momentum * batch_var
    return mean, var


class RunningNorm(NamedTuple):
    """A membrane's norm at inference: fixed statistics, `[C]` each."""

    weight: Array
    bias: Array
    mean: Array
    var: Array
    eps: float = 1e-5

    def forward(self, u: Array) -> Array:
        w, b, m, v = (part.reshape(-1, *[1] * (u.ndim - 2)) for part in self[:4])
        return w * (u - m) / np.sqrt(v + self.eps) + b


def fold(norm: RunningNorm, u_th: float) -> tuple[Array, Array]:
    """MPBN as thresholds `[C]` on the raw membrane, and the sign of each comparison.

    A positive gain fires where u >= threshold, a negative one where u <= threshold; with no
    gain the channel always fires (bias >= u_th) or never does.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        level = (u_th - norm.bias) * np.sqrt(norm.var + norm.eps) / norm.weight + norm.mean
    constant = np.where(norm.bias >= u_th, -np.inf, np.inf)
    still = norm.weight == 0
    return np.where(still, constant, level), np.where(still, 1.0, np.sign(norm.weight))


def folded_step(u: Array, level: Array, sign: Array) -> Array:
    """The spikes of raw membranes `[B, C, ...]` by folded thresholds."""
    shape = (-1, *[1] * (u.ndim - 2))
    return (sign.reshape(shape) * u >= (sign * level).reshape(shape)).astype(float)
