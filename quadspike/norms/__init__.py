"""Normalisation of the synaptic current, and its folding into weights.

A norm turns a batch's statistics into one scale and shift per channel, `[1 or T, C]` in
float32; the soma applies them. Activations are `[T*B, C, ...]`, so statistics run over
time, batch and space together.
"""

from __future__ import annotations

from torch import Tensor, nn

from quadspike.errors import check_name
from quadspike.norms.base import BatchNorm
from quadspike.norms.mpbn import MPBatchNorm
from quadspike.norms.tdbn import TDBatchNorm, TDBatchNorm1d, TDBatchNorm2d
from quadspike.norms.tebn import TEBatchNorm

__all__ = [
    "NORMS",
    "BatchNorm",
    "MPBatchNorm",
    "TDBatchNorm",
    "TDBatchNorm1d",
    "TDBatchNorm2d",
    "TEBatchNorm",
    "create_norm",
    "synchronize",
]

NORMS: dict[str, type[BatchNorm]] = {
    kind.name: kind for kind in (TDBatchNorm, BatchNorm, TEBatchNorm, MPBatchNorm)
}


def create_norm(
    name: str, channels: int, u_th: float | Tensor, eta: float, timesteps: int | None = None
) -> BatchNorm:
    """A norm by name, for a neuron with threshold `u_th`: a number, `[C]` or `[T, C]`.

    `timesteps` is for norms with parameters of each step.
    """
    kind = NORMS[check_name("norm", name, NORMS)]
    return kind.create(channels, u_th, eta, timesteps)


def synchronize(model: nn.Module, sync: bool = True) -> nn.Module:
    """Share every norm's training statistics across workers (or stop doing so)."""
    for module in model.modules():
        if isinstance(module, BatchNorm):
            module.sync = sync
    return model
