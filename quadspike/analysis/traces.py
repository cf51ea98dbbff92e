"""One call of a network forward and backward, with what every soma did in it kept."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from torch import Tensor, nn

from quadspike.errors import QuadspikeError
from quadspike.models import Block, Network
from quadspike.models.synapses import Synapse, pairs
from quadspike.neurons import Neuron
from quadspike.soma import Soma

Loss = Callable[[Network], Tensor]
"""From a network to its loss on some batch."""


@dataclass
class SomaTrace:
    """A soma in one call; the gradients are in its tensors' `grad`."""

    soma: Soma
    synapse: Synapse | None
    """What comes right before it."""
    membranes: list[Tensor] = field(default_factory=list)
    """As they met the threshold, `[B, ...]` a step."""
    received: Tensor | None = None
    """What the synapse received."""
    residual: Tensor | None = None
    output: Tensor | None = None


@dataclass
class BlockTrace:
    """The input of a residual block, once as each of its two paths received it."""

    shortcut: Tensor
    convolutions: Tensor


@dataclass(frozen=True)
class Trace:
    """A call: its loss, its somas and residual blocks by name, in order."""

    loss: float
    somas: dict[str, SomaTrace]
    blocks: dict[str, BlockTrace]


def trace(model: Network, loss: Loss) -> Trace:
    """Run `loss` and its backward on a copy of `model`, as in training, on the reference.

    Statistics are the batch's, dropout is on; `model` itself stays as it is.

    >>> import torch
    >>> from quadspike import create_model
    >>> model, x = create_model("cnn", in_channels=1, seed=0), torch.randn(8, 1, 8, 8)
    >>> seen = trace(model, lambda net: net(x).square().mean())
    >>> [membrane.grad.shape for membrane in seen.somas["conv3.soma"].membranes]
    [torch.Size([8, 128, 2, 2]), torch.Size([8, 128, 2, 2])]
    """
    twin = copy.deepcopy(model).train()
    twin.zero_grad(set_to_none=True)
    found: dict[nn.Module, tuple[str, SomaTrace]] = {}
    for name, before, soma in pairs(twin):
        assert isinstance(soma, Soma)
        synapse = before if isinstance(before, Synapse) else None
        found.setdefault(soma, (name, SomaTrace(soma, synapse)))
    somas = dict(found.values())
    for seen in somas.values():
        seen.soma.backend = "reference"
        vars(seen.soma.neuron)["excess"] = partial(_note_membrane, seen, seen.soma.neuron)
        seen.soma.register_forward_hook(partial(_note_output, seen))
        if seen.synapse is not None:
            seen.synapse.register_forward_pre_hook(partial(_note_received, seen))
    paths: dict[str, dict[str, Tensor]] = {}
    for name, block in twin.named_modules():
        if isinstance(block, Block):
            paths[name] = {}
            for path, part in (("shortcut", block.shortcut), ("convolutions", block.first)):
                part.register_forward_pre_hook(partial(_note_path, paths[name], path))
    value = loss(twin)
    somas = {name: seen for name, seen in somas.items() if seen.membranes}
    if not somas:
        raise QuadspikeError(
            "no soma in a chain has run: the loss must call the network it is given, as in "
            "lambda net: loss(net(x)), and that must have one"
        )
    value.backward()
    for seen in somas.values():
        del vars(seen.soma.neuron)["excess"]
    blocks = {name: BlockTrace(**both) for name, both in paths.items() if both}
    return Trace(float(value.detach()), somas, blocks)


def _note_membrane(seen: SomaTrace, neuron: Neuron, u: Tensor, p: Any) -> Any:
    seen.membranes.append(_kept(u))
    return type(neuron).excess(u, p)


def _note_output(seen: SomaTrace, soma: nn.Module, args: tuple[Any, ...], out: Tensor) -> None:
    seen.residual = args[2].detach() if len(args) > 2 and args[2] is not None else None
    seen.output = _kept(out)


def _note_received(seen: SomaTrace, synapse: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
    seen.received = _kept(args[0].view_as(args[0]))
    return (seen.received, *args[1:])


def _note_path(
    paths: dict[str, Tensor], path: str, part: nn.Module, args: tuple[Any, ...]
) -> tuple[Any, ...]:
    # A view of its own for each path, so that their gradients are not added up yet.
    paths[path] = _kept(args[0].view_as(args[0]))
    return (paths[path], *args[1:])


def _kept(x: Tensor) -> Tensor:
    if x.requires_grad:
        x.retain_grad()
    return x
