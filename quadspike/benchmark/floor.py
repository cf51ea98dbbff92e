"""The floor: every synapse of a training step and nothing else."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from quadspike.models import Network

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp64": torch.float64}


@dataclass
class SynapsePass:
    """One synapse on the input it really gets: its output, and the gradients a step needs."""

    name: str
    module: nn.Conv2d | nn.Linear
    x: Tensor
    first: bool
    """Nobody asks for the gradient of the network's input."""

    def __post_init__(self) -> None:
        weight = self.module.weight.detach().to(self.x.dtype)
        if weight.ndim == 4:
            weight = weight.contiguous(memory_format=torch.channels_last)
        self.weight = weight
        self.grad = torch.randn_like(self.forward())

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the forward pass, borders padded."""
        return self.weight.numel() * (self.grad.numel() // self.weight.shape[0])

    @property
    def flops(self) -> int:
        """Floating-point operations forward and backward."""
        return 2 * self.macs * (2 if self.first else 3)

    def forward(self) -> Tensor:
        """The output."""
        if isinstance(self.module, nn.Linear):
            return F.linear(self.x, self.weight)
        return F.conv2d(self.x, self.weight, None, self.module.stride, self._padding)

    def backward(self) -> tuple[Tensor | None, ...]:
        """The gradients of input and weight."""
        if isinstance(self.module, nn.Linear):
            return None if self.first else self.grad @ self.weight, self.grad.t() @ self.x
        gradients: tuple[Tensor | None, ...] = torch.ops.aten.convolution_backward(
            self.grad,
            self.x,
            self.weight,
            None,
            list(self.module.stride),
            list(self._padding),
            list(self.module.dilation),
            False,
            [0, 0],
            self.module.groups,
            [not self.first, True, False],
        )
        return gradients

    @property
    def _padding(self) -> tuple[int, ...]:
        assert isinstance(self.module, nn.Conv2d)
        assert not isinstance(self.module.padding, str)
        return self.module.padding


class Floor:
    """All synapses of a network forward, then backward in reverse order."""

    def __init__(self, model: Network, inputs: Tensor, dtype: torch.dtype) -> None:
        self.passes = synapse_passes(model, inputs, dtype)

    @property
    def flops(self) -> int:
        """Floating-point operations of a step's synapses."""
        return sum(synapse.flops for synapse in self.passes)

    def __call__(self) -> None:
        for synapse in self.passes:
            synapse.forward()
        for synapse in reversed(self.passes):
            synapse.backward()


@torch.no_grad()
def synapse_passes(model: Network, inputs: Tensor, dtype: torch.dtype) -> list[SynapsePass]:
    """Every convolution and linear layer in the order they run, each with its own input."""
    found: list[SynapsePass] = []

    def keep(name: str, module: Any, args: tuple[Any, ...], _: Tensor) -> None:
        x = args[0].to(dtype)
        found.append(SynapsePass(name, module, x, first=not found))

    with ExitStack() as hooks:
        for name, module in model.named_modules():
            if isinstance(module, nn.Conv2d | nn.Linear):
                hooks.enter_context(module.register_forward_hook(partial(keep, name)))
        with torch.autocast(inputs.device.type, dtype, enabled=dtype == torch.bfloat16):
            model(inputs)
    return found
