"""What stands for the step's derivative: functions of the excess v = u - u_th.

Each maker returns `S(v)`. None passes a gradient to its own constants.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tests.equations.recursion import Array, Slope


def box(low: Any, high: Any, height: Any = 1.0) -> Slope:
    """`height` on the closed interval."""
    return lambda v: height * ((v >= low) & (v <= high))


def rectangle(half_width: float = 0.5, height: float = 1.0, offset: float = 0.0) -> Slope:
    return box(offset - half_width, offset + half_width, height)


def window(mean: float, spread: float, u_th: float, center: str = "mean") -> Slope:
    """Height 1 where `|u - mean| <= spread`, or the same width around the threshold."""
    middle = mean - u_th if center == "mean" else 0.0
    return box(middle - spread, middle + spread)


def learned_width(beta: float, u_th: float) -> Slope:
    """LSG: area 1 on `|v| <= alpha / 2`, alpha = 2 u_th sqrt(1 + beta^2)."""
    alpha = 2 * u_th * math.sqrt(1 + beta**2)
    return box(-alpha / 2, alpha / 2, 1 / alpha)


def triangle(width: float = 1.0) -> Slope:
    return lambda v: np.maximum(0.0, width - np.abs(v)) / width**2


def arctan(alpha: float = 2.0) -> Slope:
    return lambda v: alpha / (2 * (1 + (math.pi * alpha * v / 2) ** 2))


def sigmoid(alpha: float = 4.0) -> Slope:
    return lambda v: alpha / (4 * np.cosh(alpha * v / 2) ** 2)


def dspike(b: float = 3.0, half_width: float = 0.5) -> Slope:
    """The slope of `tanh(b v) / (2 tanh(b w)) + 1/2` on `|v| <= w`: area 1."""
    return lambda v: (
        b * (1 - np.tanh(b * v) ** 2) / (2 * math.tanh(b * half_width)) * (np.abs(v) <= half_width)
    )


def evolving(progress: float, k_min: float = 1.0, k_max: float = 10.0) -> Slope:
    """IM-Loss: the slope of `tanh(K v) / 2 + 1/2`, steeper with the fraction of training done."""
    k = steepness(progress, k_min, k_max)
    return lambda v: 0.5 * k * (1 - np.tanh(k * v) ** 2)


def steepness(progress: float, k_min: float = 1.0, k_max: float = 10.0) -> float:
    """`K = ((10^p - 1) k_max + (10 - 10^p) k_min) / 9` with p = epoch / epochs."""
    ten = 10**progress
    return ((ten - 1) * k_max + (10 - ten) * k_min) / 9


def local_zo(z: Array, delta: float = 0.5) -> Slope:
    """LocalZO for given draws `z [m, ...]`: mean of `[|v| < delta |z|] |z| / (2 delta)`."""
    size = np.abs(z)
    return lambda v: ((np.abs(v) < delta * size) * size / (2 * delta)).mean(0)


def gaussian(delta: float = 0.5) -> Slope:
    """The mean of LocalZO over z ~ N(0, 1)."""
    return lambda v: np.exp(-((v / delta) ** 2) / 2) / (delta * math.sqrt(2 * math.pi))


def local_zo_variance(v: float, m: int, delta: float = 0.5) -> float:
    """The variance of LocalZO's slope over its m draws.

    E[z^2; |z| > c] = 2 (c phi(c) + Q(c)) with c = |v| / delta.
    """
    c = abs(v) / delta
    phi = math.exp(-c * c / 2) / math.sqrt(2 * math.pi)
    tail = 0.5 * math.erfc(c / math.sqrt(2))
    second = 2 * (c * phi + tail) / (4 * delta**2)
    return (second - (phi / delta) ** 2) / m
