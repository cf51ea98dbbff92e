"""Temporal effective batch normalisation."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from quadspike.errors import QuadspikeError, check_count
from quadspike.norms.base import BatchNorm


class TEBatchNorm(BatchNorm):
    """TEBN (Duan 2022): `p_t (weight (x - mean) / sqrt(var + eps) + bias)` at step t.

    Statistics are those of all steps together; the factor `p [T]` is learned and starts at 1,
    where TEBN is plain batch normalisation.

    >>> norm = TEBatchNorm(3, timesteps=2)
    >>> x = torch.randn(2, 4, 3)
    >>> bool(torch.allclose(norm(x), BatchNorm(3)(x), atol=1e-6))
    True
    """

    name = "tebn"
    per_step = "learns a factor for each step"
    cannot_fold = "TEBN scales every step by a factor of its own, and a weight has one for all"
    ranks = {rank: BatchNorm.ranks[rank] for rank in (3, 5)}
    timesteps: int

    def __init__(self, channels: int, timesteps: int, **options: Any) -> None:
        super().__init__(channels, **options)
        self.timesteps = check_count("timesteps", timesteps)
        self.p = nn.Parameter(torch.ones(timesteps))

    @classmethod
    def create(
        cls, channels: int, u_th: float | Tensor, eta: float, timesteps: int | None
    ) -> TEBatchNorm:
        if timesteps is None:
            raise QuadspikeError(
                "tebn learns a factor for each step and must know how many there are: "
                "give timesteps, such as Soma(..., norm='tebn', timesteps=4)"
            )
        return cls(channels, timesteps)

    def coefficients(self) -> tuple[Tensor, Tensor]:
        p = self.p[:, None]
        return p * self.weight, p * self.bias

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, timesteps={self.timesteps}"
