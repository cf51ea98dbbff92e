"""Threshold-dependent batch normalisation."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from quadspike.errors import QuadspikeError
from quadspike.norms.base import BatchNorm


class TDBatchNorm(BatchNorm):
    """Threshold-dependent batch normalisation (tdBN).

    `weight * eta * u_th * (x - mean) / sqrt(var + eps) + bias`: at the start the current is
    N(0, (eta u_th)^2). `eta` is 1 on serial connections and 1/sqrt(n) where n normalised
    branches are summed before one neuron. `u_th` may be per channel. Where a neuron learns its
    threshold, the norm keeps the one it started with.
    """

    name = "tdbn"

    def __init__(
        self, channels: int, u_th: float | Tensor = 0.5, eta: float = 1.0, **options: Any
    ) -> None:
        super().__init__(channels, **options)
        if isinstance(u_th, Tensor) and u_th.ndim:
            if u_th.shape != (channels,):
                raise QuadspikeError(
                    f"tdBN of {channels} channels takes u_th as a number or [{channels}], "
                    f"got {tuple(u_th.shape)}"
                )
            u_th = u_th.detach().clone()  # a learned one goes on without it
            del self.gain
            self.register_buffer("gain", eta * u_th, persistent=False)
            lowest = float(u_th.min())
        else:
            lowest = u_th = float(u_th)
            self.gain = eta * u_th
        if not (lowest > 0 and eta > 0):
            raise QuadspikeError(f"tdBN needs u_th > 0 and eta > 0, got u_th={lowest}, eta={eta}")
        self.u_th, self.eta = u_th, eta

    @classmethod
    def create(
        cls, channels: int, u_th: float | Tensor, eta: float, timesteps: int | None
    ) -> TDBatchNorm:
        if isinstance(u_th, Tensor):
            u_th = u_th.mean(0) if u_th.ndim == 2 else u_th
        return cls(channels, u_th=u_th, eta=eta)

    def extra_repr(self) -> str:
        u_th: Any = self.u_th
        if isinstance(u_th, Tensor):
            u_th = f"[{len(u_th)}] in {u_th.min():g}..{u_th.max():g}"
        return f"{super().extra_repr()}, u_th={u_th}, eta={self.eta}"


class TDBatchNorm1d(TDBatchNorm):
    """tdBN of `[N, C]` or `[T, B, C]`."""

    ranks = {rank: BatchNorm.ranks[rank] for rank in (2, 3)}


class TDBatchNorm2d(TDBatchNorm):
    """tdBN of `[N, C, H, W]` or `[T, B, C, H, W]`.

    >>> import torch
    >>> norm = TDBatchNorm2d(8, u_th=0.5)
    >>> y = norm(torch.randn(2, 16, 8, 4, 4) * 3 + 1)
    >>> round(y.std().item(), 2)
    0.5
    """

    ranks = {rank: BatchNorm.ranks[rank] for rank in (4, 5)}
