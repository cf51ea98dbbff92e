"""LocalZO: the slope of a step, asked of a few random steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from quadspike.errors import check_count
from quadspike.randomness import Key, bits, fresh_key
from quadspike.surrogates.base import Surrogate, Thresholded, positive

_BITS = 21
"""Of a draw: a word of 64 holds three, and the largest |z| is 5.2."""
_EACH = 64 // _BITS


class Draws(NamedTuple):
    """What the draws of one step of a layer depend on."""

    delta: float
    samples: int
    key: Key | None = None
    place: str = ""


@dataclass(frozen=True)
class LocalZO(Surrogate):
    """The mean of `[|v| < delta |z_k|] |z_k| / (2 delta)` over `samples` draws z_k ~ N(0, 1).

    (Mukhoty 2023.) Its expectation is the Gaussian surrogate `phi(v / delta) / delta`. The draws
    are made in the backward, a function of the call's key, the layer, the time step, k and the
    sample's place in the batch; without a key they follow `torch.manual_seed`.
    """

    delta: float = 0.5
    samples: int = 5
    name: ClassVar[str] = "local-zo"
    only_reference: ClassVar[str] = "LocalZO draws random numbers while it computes gradients"
    draws: ClassVar[bool] = True

    def __post_init__(self) -> None:
        positive("LocalZO", delta=self.delta)
        check_count("samples", self.samples)

    def constants(self, neuron: Thresholded) -> Draws:
        return Draws(self.delta, self.samples)

    @staticmethod
    def derivative(v: Tensor, s: Draws) -> Any:
        key = fresh_key() if s.key is None else s.key
        distance, total = v.abs(), torch.zeros_like(v)
        for k in range(s.samples):
            if k % _EACH == 0:
                word = bits(tuple(v.shape), key, f"{s.place}, word {k // _EACH}", v.device)
            share = ((word >> k % _EACH * _BITS & (2**_BITS - 1)).to(v.dtype) + 0.5) * 2**-_BITS
            z = math.sqrt(2) * share.erfinv()  # |N(0, 1)|, by its inverse distribution
            total = total + (distance < s.delta * z).to(v.dtype) * z
        return total / (2 * s.delta * s.samples)

    def reach(self, neuron: Thresholded) -> tuple[float, float]:
        half = self.delta * math.sqrt(2 * math.log(2))  # of its mean, the Gaussian
        return -half, half
