"""How faithful a folded network is, counted spike by spike."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from inspect import BoundArguments, signature
from typing import Any

import torch
from torch import Tensor, nn

from quadspike.call import Call
from quadspike.errors import QuadspikeError
from quadspike.models.network import Network
from quadspike.models.synapses import Synapse, pairs
from quadspike.soma import Soma
from quadspike.taps import Taps

Given = dict[nn.Module, BoundArguments]
"""What every synapse and soma that ran was called with."""
TIE = 1000
"""Roundings within which a membrane is at the threshold: a sum of some thousand terms."""


@dataclass(frozen=True)
class LayerCheck:
    """One layer fed the same input in both networks."""

    layer: str
    spikes: int
    changed: int
    ties: int
    """Changed spikes whose membrane lay within rounding of the threshold, then or before."""


@dataclass(frozen=True)
class FoldCheck:
    """Layer by layer on equal input, and the two networks from end to end."""

    layers: tuple[LayerCheck, ...]
    changed_spikes: float
    """Share of all spikes that differ when the whole networks run on the same images."""
    changed_predictions: float

    @property
    def unexplained(self) -> int:
        """Changed spikes on equal input that are not ties: 0 for a right fold in float32 or wider.

        Weights in half precision are rounded anew, by more than what counts as a tie.
        """
        return sum(layer.changed - layer.ties for layer in self.layers)


@torch.no_grad()
def check_fold(model: Network, folded: Network, x: Tensor) -> FoldCheck:
    """Compare a network in evaluation mode with its folded copy on a batch."""
    if model.training or folded.training:
        raise QuadspikeError("a fold is compared in evaluation mode: call .eval() on both networks")
    if not model.somas():
        raise QuadspikeError("the network has no soma, so there is nothing to fold")
    given: Given = {}

    def remember(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        given[module] = signature(module.forward).bind(*args, **kwargs)

    with ExitStack() as hooks:
        for module in (part for _, *pair in pairs(model) for part in pair if part is not None):
            hooks.enter_context(module.register_forward_pre_hook(remember, with_kwargs=True))
        first, spikes = model(x, taps="spikes")
    second, others = folded(x, taps="spikes")
    layers = tuple(
        _compare(name, before, after, given)
        for (name, *before), (_, *after) in zip(pairs(model), pairs(folded), strict=True)
        if before[1] in given
    )
    differs = [(value["spikes"] != others[name]["spikes"]) for name, value in spikes.items()]
    total = max(1, sum(map(torch.numel, differs)))
    changed = sum(int(layer.sum()) for layer in differs) / total
    moved = model.predict(first).argmax(-1) != folded.predict(second).argmax(-1)
    return FoldCheck(layers, changed, float(moved.double().mean()))


def _compare(name: str, before: list[Any], after: list[Any], given: Given) -> LayerCheck:
    called = given[before[1]].arguments
    call, residual = called["call"], called.get("residual")
    x = given[before[0]].args[0] if isinstance(before[0], Synapse) else called["x"]
    seen = [_spikes(pair, x, call, residual) for pair in (before, after)]
    changed = seen[0]["spikes"] != seen[1]["spikes"]
    close = _at_threshold(before[1], seen[0]) & _at_threshold(after[1], seen[1])
    # A spike that flips at a tie also changes what its neuron does in later steps.
    after_tie = (changed & close).cumsum(0) > 0
    ties = int((changed & after_tie).sum())
    return LayerCheck(name, changed.numel(), int(changed.sum()), ties)


def _spikes(pair: list[Any], x: Tensor, call: Call, residual: Tensor | None) -> dict[str, Tensor]:
    synapse, soma = pair
    alone = Call(call.timesteps, call.batch, taps=Taps(("spikes", "membrane")))
    soma(synapse(x) if isinstance(synapse, Synapse) else x, alone, residual)
    return alone.seen[alone.name(soma)]


def _at_threshold(soma: Soma, seen: dict[str, Tensor]) -> Tensor:
    membrane = seen["membrane"]
    rounding = TIE * torch.finfo(membrane.dtype).eps * (1 + membrane.abs())
    close = torch.zeros_like(membrane, dtype=torch.bool)
    for edge in soma.neuron.edges:
        close |= (membrane - _like(edge, membrane)).abs() <= rounding
    return close


def _like(threshold: Any, membrane: Tensor) -> Any:
    """A threshold shaped to broadcast over membranes `[T, B, C, ...]`."""
    if not isinstance(threshold, Tensor) or threshold.ndim == 0:
        return threshold
    lead = threshold.shape[:-1] if threshold.ndim == 2 else (1,)
    return threshold.view(*lead, 1, -1, *[1] * (membrane.ndim - 3))
