"""Neurons as others write them: plainly in PyTorch, from SpikingJelly, from snnTorch.

The other libraries are imported when they are asked for; none is needed to use this one.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn

from quadspike.errors import QuadspikeError
from quadspike.neurons import LIF, QIF, Neuron

_ABOVE_ONE = 1.000001
"""SpikingJelly's QIF divides its input by tau, which must exceed 1."""


def _theirs(module: str) -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name != package:
            raise
        raise QuadspikeError(f"{package} is not installed here; pip install {package}") from None


class Fire(torch.autograd.Function):
    """A step whose slope is 1 between `low` and `high`."""

    @staticmethod
    def forward(ctx: Any, excess: Tensor, low: float, high: float) -> Tensor:
        ctx.save_for_backward(excess)
        ctx.low, ctx.high = low, high
        return (excess >= 0).to(excess.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (excess,) = ctx.saved_tensors
        inside = (excess >= ctx.low) & (excess <= ctx.high)
        return grad * inside, None, None


class LoopNeuron(nn.Module):
    """A neuron's equation in a Python loop over time, under autograd."""

    def __init__(self, neuron: Neuron) -> None:
        super().__init__()
        self.advance, self.p = neuron.advance, neuron.constants()
        self.low, self.high = neuron.surrogate.reach(neuron)

    def forward(self, x: Tensor) -> Tensor:
        currents = _steps(x)
        u = o = torch.zeros_like(currents[0])
        spikes = []
        for current in currents:
            u = self.advance(u, o, current, self.p)
            o = Fire.apply(u - self.p.u_th, self.low, self.high)
            spikes.append(o)
        return torch.cat(spikes).view(x.shape)


def _steps(x: Tensor) -> tuple[Tensor, ...]:
    """The current of each step; the same tensor for all where one is shown again and again."""
    if x.stride(0) == 0:
        return (x[0],) * len(x)
    # Keeps channels last, forward and backward, which unbind would not.
    parts: tuple[Tensor, ...] = x.flatten(0, 1).split(x.shape[1])
    return parts


def spikingjelly_node(neuron: Neuron) -> nn.Module:
    """SpikingJelly's neuron of the same equation, as its users call it: multi-step mode."""
    theirs = _theirs("spikingjelly.activation_based.neuron")
    options = {"surrogate_function": _surrogate(), "step_mode": "m"}
    kinds = {LIF: theirs.LIFNode, QIF: theirs.QIFNode}
    node: nn.Module = kinds[type(neuron)](**_numbers(neuron), **options)
    return node


class SpikingJellyKernels(nn.Module):
    """The same through its functional interface with a float32 state.

    Its neurons keep their state in the type of the input, and its kernels take float32 states
    only: under bf16 autocast its modules leave the kernels for plain PyTorch.
    """

    def __init__(self, neuron: Neuron) -> None:
        super().__init__()
        functional = _theirs("spikingjelly.activation_based.functional")
        kinds: dict[type, Any] = {LIF: functional.lif_multi_step, QIF: functional.qif_multi_step}
        self.run = kinds[type(neuron)]
        self.numbers = {**_numbers(neuron), "surrogate_function": _surrogate()}

    def forward(self, x: Tensor) -> Tensor:
        rest = torch.zeros_like(x[0], dtype=torch.float32)
        out: Tensor = self.run(x, rest, **self.numbers)[0]
        return out


def _surrogate() -> nn.Module:
    surrogate = _theirs("spikingjelly.activation_based.surrogate")
    sigmoid: nn.Module = surrogate.Sigmoid(alpha=4.0)  # its own default, which its kernels know
    return sigmoid


def _numbers(neuron: Neuron) -> dict[str, Any]:
    """Our parameters in SpikingJelly's terms."""
    shared = {"v_threshold": neuron.threshold, "detach_reset": neuron.detach_reset}
    if isinstance(neuron, LIF):
        decay = {"tau": 1 / (1 - neuron.beta), "decay_input": False}
        return {**shared, **decay, "v_reset": neuron.u_reset}
    if isinstance(neuron, QIF):
        parabola = {"a0": neuron.a * _ABOVE_ONE, "v_rest": neuron.resting, "v_c": neuron.critical}
        return {**shared, **parabola, "tau": _ABOVE_ONE, "v_reset": neuron.u_reset}
    raise QuadspikeError(f"SpikingJelly has no counterpart of {type(neuron).__name__} here")


class SnnTorchNeuron(nn.Module):
    """snnTorch's leaky neuron, stepped as its users do."""

    def __init__(self, neuron: Neuron) -> None:
        super().__init__()
        snntorch = _theirs("snntorch")
        if not isinstance(neuron, LIF):
            raise QuadspikeError(f"snnTorch has no {type(neuron).__name__}; compare with lif")
        self.leaky = snntorch.Leaky(
            neuron.beta, threshold=neuron.threshold, reset_mechanism="zero", reset_delay=False
        )

    def forward(self, x: Tensor) -> Tensor:
        membrane = self.leaky.init_leaky()
        spikes = []
        for current in _steps(x):
            spike, membrane = self.leaky(current, membrane)
            spikes.append(spike)
        return torch.cat(spikes).view(x.shape)


def reset_spikingjelly(model: nn.Module) -> None:
    """Back to rest, which its modules need before every batch."""
    _theirs("spikingjelly.activation_based.functional").reset_net(model)
