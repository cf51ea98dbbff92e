"""Surrogates that are slopes of a hyperbolic tangent.

`tanh(x) = 2 sigmoid(2 x) - 1`, so `1 - tanh(x)^2 = 4 g (1 - g)` with `g = sigmoid(2 x)`: lines
that need no tanh, which Triton does not have.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from quadspike.errors import QuadspikeError
from quadspike.surrogates.base import Surrogate, Thresholded, positive
from quadspike.surrogates.slopes import Logistic, Steepness


class _Piece(NamedTuple):
    alpha: Any
    height: Any
    half_width: Any


@dataclass(frozen=True)
class Dspike(Surrogate):
    """`b (1 - tanh(b v)^2) / (2 tanh(b w))` where `|v| <= w`, else 0: area 1.

    `b` is `temperature`, `w` is `half_width`. The slope of a tanh stretched so that it goes from
    0 to 1 within `w` of the threshold; b = 3 on w = 1/2 as in IM-Loss and MPBN, b = 2.5 on w = 1
    in surrogate module learning.

    >>> Dspike().config()
    {'name': 'dspike', 'temperature': 3.0, 'half_width': 0.5}
    """

    temperature: float = 3.0
    half_width: float = 0.5
    name: ClassVar[str] = "dspike"

    def __post_init__(self) -> None:
        positive("Dspike", temperature=self.temperature, half_width=self.half_width)

    def constants(self, neuron: Thresholded) -> _Piece:
        alpha = 2 * self.temperature
        return _Piece(alpha, alpha / math.tanh(self.temperature * self.half_width), self.half_width)

    @staticmethod
    def derivative(v: Any, s: Any) -> Any:
        g = (s.alpha * v).sigmoid()
        return (v.abs() <= s.half_width).to(v.dtype) * s.height * g * (1.0 - g)

    def corners(self, neuron: Thresholded) -> tuple[float, float]:
        return -self.half_width, self.half_width

    def reach(self, neuron: Thresholded) -> tuple[float, float]:
        half = min(self.half_width, math.asinh(1) / self.temperature)
        return -half, half


@dataclass(frozen=True)
class Evolving(Logistic):
    """IM-Loss's evolving slope, `K (1 - tanh(K v)^2) / 2`: area 1, steeper as training goes on.

    `K = ((10^i - 1) k_max + (10 - 10^i) k_min) / 9` at the share `i` of the training, from
    `k_min` to `k_max`. The neuron holds that share in its buffer `progress`, which a training
    loop writes; 0 without one.
    """

    k_min: float = 1.0
    k_max: float = 10.0
    name: ClassVar[str] = "evolving"
    evolves: ClassVar[bool] = True

    def __post_init__(self) -> None:
        positive("Evolving", k_min=self.k_min, k_max=self.k_max)
        if self.k_max < self.k_min:
            raise QuadspikeError(
                f"Evolving needs k_min <= k_max, got k_min={self.k_min}, k_max={self.k_max}"
            )

    def constants(self, neuron: Thresholded) -> Steepness:
        # A tensor throughout, so that a captured graph sees the training go on.
        grown = (neuron.progress * math.log(10)).exp()
        steepness = ((grown - 1) * self.k_max + (10 - grown) * self.k_min) / 9
        return Steepness(2 * steepness)
