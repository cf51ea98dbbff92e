"""The same network from another library's parts: our chain walked, each soma replaced.

What comes out is ordinary `nn.Module`s, without our call machinery, so that it can be compiled
and costs only what its own author's code would.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Callable

import torch
from torch import Tensor, nn

from quadspike.call import Timed
from quadspike.errors import QuadspikeError
from quadspike.models import Network
from quadspike.models.chain import Dropout
from quadspike.models.pool import AveragePool, MaxPool
from quadspike.models.resnet import Block
from quadspike.neurons import Neuron
from quadspike.norms import BatchNorm
from quadspike.soma import Soma

MakeNeuron = Callable[[Neuron], nn.Module]
"""From our neuron to a module that takes currents `[T, B, ...]` and gives spikes of that shape."""


class PeerSoma(nn.Module):
    """Normalisation, residual and another library's neuron."""

    def __init__(
        self, norm: nn.Module, neuron: nn.Module, place: str | None, steps: int, spreads: bool
    ) -> None:
        super().__init__()
        self.norm, self.neuron = norm, neuron
        self.place, self.steps, self.spreads = place, steps, spreads

    def forward(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        x = self.norm(x)
        if self.spreads:
            x = x[None].expand(self.steps, *x.shape)
        else:
            x = x.unflatten(0, (self.steps, -1))
        other = None if residual is None else residual.unflatten(0, (self.steps, -1))
        if other is not None and self.place == "before":
            x = x + other
        out: Tensor = self.neuron(x)
        if other is not None and self.place == "after":
            out = out + other
        return out.flatten(0, 1)


class PeerChain(nn.Sequential):
    """Modules in order; a residual enters the last."""

    def forward(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        last = len(self) - 1
        for index, module in enumerate(self):
            x = module(x, residual) if residual is not None and index == last else module(x)
        return x


class PeerBlock(nn.Module):
    """A residual block."""

    def __init__(self, first: nn.Module, shortcut: nn.Module, second: nn.Module) -> None:
        super().__init__()
        self.first, self.shortcut, self.second = first, shortcut, second

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.second(self.first(x), self.shortcut(x))
        return out


class PeerNetwork(nn.Module):
    """Logits `[T, B, classes]` of images `[B, ...]` or clips `[T, B, ...]`."""

    def __init__(self, body: nn.Module, steps: int, static: bool) -> None:
        super().__init__()
        self.body, self.steps, self.static = body, steps, static

    def forward(self, x: Tensor) -> Tensor:
        flat = x if self.static else x.flatten(0, 1)
        out: Tensor = self.body(flat.contiguous(memory_format=torch.channels_last))
        return out.view(self.steps, -1, out.shape[-1])


def rebuild(model: Network, static: bool, make_neuron: MakeNeuron) -> PeerNetwork:
    """`model` with the same synapses, weights and normalisations, and other neurons."""
    body = _Builder(model.timesteps, static, make_neuron).chain(model)
    return PeerNetwork(body, model.timesteps, static)


class _Builder:
    def __init__(self, steps: int, static: bool, make_neuron: MakeNeuron) -> None:
        self.steps, self.make_neuron = steps, make_neuron
        self.spreads = static
        """Whether the next soma is the one that spreads a static image over time."""

    def chain(self, chain: nn.Sequential) -> PeerChain:
        parts: OrderedDict[str, nn.Module] = OrderedDict()
        flat = False
        for name, module in chain.named_children():
            parts[name] = self.convert(module, flat)
            flat = isinstance(module, nn.Linear)
        return PeerChain(parts)

    def convert(self, module: nn.Module, flat: bool) -> nn.Module:
        """A module's counterpart; `flat` says that it follows a linear layer."""
        if isinstance(module, Soma):
            norm = nn.Identity() if module.norm is None else _norm(module.norm, flat)
            spreads, self.spreads = self.spreads, False
            neuron = self.make_neuron(module.neuron)
            return PeerSoma(norm, neuron, module.residual, self.steps, spreads)
        if isinstance(module, BatchNorm):
            return _norm(module, flat)
        if isinstance(module, Block):
            parts = (module.first, module.shortcut, module.second)
            return PeerBlock(*(self.chain(part) for part in parts))
        if isinstance(module, nn.Sequential):
            return self.chain(module)
        if isinstance(module, Dropout):
            return nn.Dropout(module.p) if module.p else nn.Identity()
        if isinstance(module, AveragePool | MaxPool):
            return _pool(module)
        if isinstance(module, Timed):
            raise QuadspikeError(f"no counterpart of {type(module).__name__} in other libraries")
        return copy.deepcopy(module)


def _pool(pool: AveragePool | MaxPool) -> nn.Module:
    """torch's own pooling."""
    kind = nn.AvgPool2d if isinstance(pool, AveragePool) else nn.MaxPool2d
    return kind(**{name: getattr(pool, name) for name in kind.__constants__})


def _norm(norm: BatchNorm, flat: bool) -> nn.Module:
    """torch's own batch normalisation, with tdBN's gain in its weight."""
    if norm.timesteps is not None or norm.membrane is not None:
        raise QuadspikeError(f"no counterpart of the norm {norm.name!r} in other libraries")
    kind = nn.BatchNorm1d if flat else nn.BatchNorm2d
    twin = kind(norm.channels, eps=norm.eps, momentum=norm.momentum)
    with torch.no_grad():
        twin.weight.copy_(norm.weight * norm.gain)
        twin.bias.copy_(norm.bias)
    return twin.to(norm.weight)
