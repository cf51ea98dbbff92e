"""Surrogates that fall off on both sides of the threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from quadspike.surrogates.base import Surrogate, Thresholded, positive


class _Width(NamedTuple):
    width: Any


@dataclass(frozen=True)
class Triangle(Surrogate):
    """`max(0, width - |v|) / width^2`: area 1, support of `width` on either side."""

    width: float = 1.0
    name: ClassVar[str] = "triangle"

    def __post_init__(self) -> None:
        positive("Triangle", width=self.width)

    def constants(self, neuron: Thresholded) -> _Width:
        return _Width(self.width)

    @staticmethod
    def derivative(v: Any, s: Any) -> Any:
        height = s.width - v.abs()
        return height * (height > 0).to(v.dtype) / (s.width * s.width)

    def corners(self, neuron: Thresholded) -> tuple[float, float, float]:
        return -self.width, 0.0, self.width

    def reach(self, neuron: Thresholded) -> tuple[float, float]:
        return -self.width / 2, self.width / 2


class Steepness(NamedTuple):
    """How steep the step is that a slope stands in for."""

    alpha: Any


@dataclass(frozen=True)
class ArcTan(Surrogate):
    """`alpha / (2 (1 + (pi alpha v / 2)^2))`: the slope of an arctangent, area 1."""

    alpha: float = 2.0
    name: ClassVar[str] = "arctan"

    def __post_init__(self) -> None:
        positive("ArcTan", alpha=self.alpha)

    def constants(self, neuron: Thresholded) -> Steepness:
        return Steepness(self.alpha)

    @staticmethod
    def derivative(v: Any, s: Any) -> Any:
        w = 1.5707963267948966 * s.alpha * v  # pi / 2
        return 0.5 * s.alpha / (1.0 + w * w)

    def reach(self, neuron: Thresholded) -> tuple[float, float]:
        half = 2 / (math.pi * self.alpha)
        return -half, half


@dataclass(frozen=True)
class Logistic(Surrogate):
    """`alpha g (1 - g)` with `g = sigmoid(alpha v)`: area 1."""

    @staticmethod
    def derivative(v: Any, s: Any) -> Any:
        g = (s.alpha * v).sigmoid()
        return s.alpha * g * (1.0 - g)

    def reach(self, neuron: Thresholded) -> tuple[Any, Any]:
        half = math.log(3 + 2 * math.sqrt(2)) / self.constants(neuron).alpha
        return -half, half


@dataclass(frozen=True)
class Sigmoid(Logistic):
    """`alpha g (1 - g)` with `g = sigmoid(alpha v)`: area 1."""

    alpha: float = 4.0
    name: ClassVar[str] = "sigmoid"

    def __post_init__(self) -> None:
        positive("Sigmoid", alpha=self.alpha)

    def constants(self, neuron: Thresholded) -> Steepness:
        return Steepness(self.alpha)
