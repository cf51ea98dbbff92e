"""LocalZO: the slope of a step, asked of a few random steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from torch import Tensor

from quadspike.errors import check_count
from quadspike.surrogates.base import Surrogate, Thresholded, positive


class _Nudge(NamedTuple):
    height: Any
    narrow: Any
    share: Any = 0.5


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
    not_vectorised: ClassVar[str] = "LocalZO draws random numbers while it computes gradients"

    def __post_init__(self) -> None:
        positive("LocalZO", delta=self.delta)
        check_count("samples", self.samples)

    @property
    def draws(self) -> int:
        return self.samples

    def constants(self, neuron: Thresholded) -> _Nudge:
        return _Nudge(0.5 / self.delta, 0.5 / self.delta**2)

    @staticmethod
    def derivative(v: Any, s: Any) -> Any:
        """`[|v| / (2 delta^2) < y] y` with `y = |z| / (2 delta)`, for one draw of |z|.

        |z| is exceeded with the chance t = `s.share`: `|z| = (1 - t) P(1 - (t (2 - t))^(1/8))`,
        P a polynomial fitted so that |z| has the distribution of |N(0, 1)| to 8e-7. Its values
        are right to 7e-5 below 3, and to 0.006 at its end, 5.2.
        """
        b = 1.0 - (s.share * (2.0 - s.share)).sqrt().sqrt().sqrt()
        p = 2.4943182 * b + 0.12461916
        p = p * b - 2.0894144
        p = p * b + 0.2873249
        p = p * b + 2.3561591
        p = p * b + 2.6248026
        p = p * b + 1.2533184
        y = (s.height - s.height * s.share) * p
        return (v.abs() * s.narrow < y).to(v.dtype) * y

    def mean_slope(self, v: Tensor, s: Any) -> Tensor:
        z = v / self.delta
        return (-0.5 * z * z).exp() / (self.delta * math.sqrt(2 * math.pi))

    def reach(self, neuron: Thresholded) -> tuple[float, float]:
        half = self.delta * math.sqrt(2 * math.log(2))  # of its mean, the Gaussian
        return -half, half
