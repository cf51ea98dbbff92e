"""Batch normalisation, and what every norm shares."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn

from quadspike import ops
from quadspike.errors import QuadspikeError, check_count
from quadspike.norms.workers import merge


class BatchNorm(nn.Module):
    """`weight * gain * (x - mean) / sqrt(var + eps) + bias`, per channel; here gain = 1.

    Biased variance normalises, unbiased variance goes to the running average. With
    `sync=True` the statistics are those of all workers of the process group.
    """

    name: ClassVar[str] = "bn"
    per_step: ClassVar[str] = ""
    """What every time step has of its own, if anything, as a verb and its object."""
    only_reference: ClassVar[str] = ""
    """Why the fused paths cannot run this norm, if they cannot."""
    in_parts: ClassVar[str] = ""
    """Why they run it in several parts, if they do."""
    cannot_fold: str = ""
    """Why no weight can take this norm in, if none can."""
    timesteps: int | None = None
    """How many steps have parameters of their own; None where all share theirs."""
    ranks: ClassVar[dict[int, str]] = {
        2: "[N, C]",
        3: "[T, B, C]",
        4: "[N, C, H, W]",
        5: "[T, B, C, H, W]",
    }
    gain: float | Tensor
    running_mean: Tensor
    running_var: Tensor

    def __init__(
        self, channels: int, eps: float = 1e-5, momentum: float = 0.1, sync: bool = False
    ) -> None:
        super().__init__()
        check_count("channels", channels)
        if not (eps >= 0 and 0 <= momentum <= 1):
            raise QuadspikeError(
                f"a normalisation needs eps >= 0 and momentum in [0, 1], got {eps}, {momentum}"
            )
        self.channels, self.eps, self.momentum, self.sync = channels, eps, momentum, sync
        self.gain = 1.0
        self.membrane: BatchNorm | None = None
        """A norm of the membrane itself, one step after the other."""
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_var", torch.ones(channels))

    @classmethod
    def create(
        cls, channels: int, u_th: float | Tensor, eta: float, timesteps: int | None
    ) -> BatchNorm:
        """The norm before a neuron of threshold `u_th` that runs `timesteps` steps."""
        return cls(channels)

    def coefficients(self) -> tuple[Tensor, Tensor]:
        """Weight and bias: `[C]`, or `[T, C]` where every step has its own."""
        return self.weight, self.bias

    def check_steps(self, steps: int) -> None:
        """Refuse to run more steps than there are parameters for."""
        if self.timesteps is not None and steps > self.timesteps:
            raise QuadspikeError(
                f"{self.name} has parameters for {self.timesteps} steps, step {steps} was asked "
                f"for; make it with timesteps={steps}, or use a norm whose steps share theirs"
            )

    def affine(
        self, x: Tensor, repeats: int = 1, statistics: Callable[[Tensor], ops.Moments] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Scale and shift `[1 or T, C]` for `x [N, C, ...]`, which stands for `repeats` steps.

        `statistics` computes the batch's, if not the reference.
        """
        if self.training:
            self._check_count(x)
            moments = (statistics or ops.statistics)(x)
            mean, var = self._of_batch(moments, repeats)
        else:
            mean, var = self.running_mean, self.running_var
        return self._scale_and_shift(mean, var)

    def terms(self, x: Tensor) -> ops.Normalisation | None:
        """What the fused operator needs to normalise `x [N, C, ...]` itself.

        None for a norm with an `affine` of its own: its scale and shift are then made first.
        """
        if type(self).affine is not BatchNorm.affine:
            return None
        if self.training:
            self._check_count(x)
        running = None if self.training else (self.running_mean, self.running_var)
        return ops.Normalisation(
            *self.coefficients(), self.gain, self.eps, running, self._synchronised
        )

    @torch.no_grad()
    def track(self, mean: Tensor, var: Tensor) -> None:
        """Move the running statistics towards a batch's mean and unbiased variance."""
        average = [self.running_mean, self.running_var]
        batch = [mean.to(self.running_mean.dtype), var.to(self.running_var.dtype)]
        torch._foreach_lerp_(average, batch, self.momentum)

    def folded(self) -> tuple[Tensor, Tensor]:
        """Scale and shift `[C]` at inference, in float64, for merging into weights."""
        scale, shift = self._scale_and_shift(self.running_mean.double(), self.running_var.double())
        return scale[0].detach(), shift[0].detach()

    def forward(self, x: Tensor) -> Tensor:
        """The normalised current, in `x`'s dtype; `[T, B, C, ...]` or `[N, C, ...]`."""
        self._check(x)
        self.check_steps(len(x))
        channel = 2 if x.ndim % 2 else 1
        flat = x.flatten(0, channel - 1)
        stored = self.running_mean.dtype == ops.compute_dtype(x)
        shared = self.timesteps is None and self.terms(flat) is not None
        if stored and shared and not self._synchronised:
            return self._at_once(flat).view(x.shape)
        shape = (-1, *[1] * (channel - 1), self.channels, *[1] * (x.ndim - channel - 1))
        scale, shift = (value[: len(x)].view(shape) for value in self.affine(flat))
        return (x.to(ops.compute_dtype(x)) * scale + shift).to(x.dtype)

    def _at_once(self, x: Tensor) -> Tensor:
        """Statistics, affine and running averages by torch's own operator."""
        dtype = ops.compute_dtype(x)
        weight, bias = (self.gain * self.weight).to(dtype), self.bias.to(dtype)
        return F.batch_norm(
            x,
            self.running_mean,
            self.running_var,
            weight,
            bias,
            self.training,
            self.momentum,
            self.eps,
        )

    def _scale_and_shift(self, mean: Tensor, var: Tensor) -> tuple[Tensor, Tensor]:
        # At least float32, whatever the parameters are stored in.
        mean, var = mean.to(ops.compute_dtype(mean)), var.to(ops.compute_dtype(var))
        weight, bias = self.coefficients()
        scale = self.gain * weight.to(var.dtype) * torch.rsqrt(var + self.eps)
        return torch.atleast_2d(scale), torch.atleast_2d(bias.to(var.dtype) - scale * mean)

    def _of_batch(self, moments: ops.Moments, repeats: int) -> tuple[Tensor, Tensor]:
        if self._synchronised:
            moments = merge(moments)
        count = moments.n * repeats
        var = moments.m2 / moments.n
        self.track(moments.mean, var * (count / (count - 1)))
        return moments.mean, var

    @property
    def _synchronised(self) -> bool:
        return self.sync and dist.is_available() and dist.is_initialized()

    @staticmethod
    def _check_count(x: Tensor) -> None:
        if not torch.compiler.is_compiling() and x.numel() // x.shape[1] < 2:
            raise QuadspikeError(
                f"training statistics need more than one value per channel, got input "
                f"{tuple(x.shape)}; use a larger batch, or .eval()"
            )

    def _check(self, x: Tensor) -> None:
        if x.ndim not in self.ranks:
            allowed = " or ".join(self.ranks.values())
            raise QuadspikeError(f"{type(self).__name__} takes {allowed}, got {tuple(x.shape)}")
        if not x.is_floating_point():
            raise QuadspikeError(f"{type(self).__name__} takes a floating tensor, got {x.dtype}")
        channels = x.shape[2 if x.ndim % 2 else 1]
        if channels != self.channels:
            raise QuadspikeError(
                f"{type(self).__name__} is for {self.channels} channels, "
                f"got {channels} in {tuple(x.shape)}"
            )

    def extra_repr(self) -> str:
        return f"{self.channels}, eps={self.eps}, momentum={self.momentum}, sync={self.sync}"
