"""Merging every normalisation into the synapse before it."""

from __future__ import annotations

import copy
from collections import Counter

import torch
from torch import Tensor, nn

from quadspike.errors import QuadspikeError
from quadspike.models.network import Network
from quadspike.models.synapses import Synapse, children, pairs
from quadspike.neurons.base import Neuron
from quadspike.neurons.sided import Sided, sided
from quadspike.norms import BatchNorm
from quadspike.soma import Soma


def fold(model: Network) -> Network:
    """A copy for inference in which `W' = s W`, `b' = s b + shift`, and no norm is left.

    A norm of the membrane becomes a threshold per channel. The copy gives the same spikes up to
    rounding at the threshold; `check_fold` counts.
    """
    if not isinstance(model, Network):
        raise QuadspikeError(
            f"fold takes a quadspike.Network, got {type(model).__name__}; put it into one"
        )
    for name, synapse, _ in pairs(model, (Soma, BatchNorm)):
        if isinstance(synapse, Synapse) and "weight" not in synapse._parameters:
            raise QuadspikeError(
                f"cannot fold layer {name!r}: the weight of its {type(synapse).__name__} is "
                "computed from others; make it one first, with remove_parametrizations or "
                "prune.remove"
            )
    folded = copy.deepcopy(model).eval()
    places = _places(folded)
    for name, synapse, module in pairs(folded, (Soma, BatchNorm)):
        norm = module.norm if isinstance(module, Soma) else module
        if not isinstance(norm, BatchNorm):
            continue
        if norm.cannot_fold:
            raise QuadspikeError(
                f"cannot fold layer {name!r}: {norm.cannot_fold}; run the network as it is"
            )
        if not isinstance(synapse, Synapse):
            found = type(synapse).__name__ if synapse is not None else "nothing"
            raise QuadspikeError(
                f"cannot fold layer {name!r}: its normalisation follows {found}, not a "
                "convolution or linear layer; put the soma right after its synapse"
            )
        if len(synapse.weight) != norm.channels:
            raise QuadspikeError(
                f"cannot fold layer {name!r}: its normalisation has {norm.channels} channels and "
                f"its {type(synapse).__name__} makes {len(synapse.weight)} numbers along another "
                "axis; run the network as it is"
            )
        for part in (synapse, synapse.weight, module, norm):
            if places[part] > 1:
                raise QuadspikeError(
                    f"cannot fold layer {name!r}: its {type(part).__name__} stands in "
                    f"{places[part]} places, and would be another in all of them; give each its "
                    "own, or run the network as it is"
                )
        _merge(synapse, norm)
        if isinstance(module, Soma):
            if norm.membrane is not None:
                fold_membrane(module.neuron, norm.membrane)
            module.norm = None
        else:
            folded.set_submodule(name, nn.Identity().eval())
    left = [name for name, module in folded.named_modules() if isinstance(module, BatchNorm)]
    if left:
        raise QuadspikeError(
            f"cannot fold {', '.join(left)}: the synapse before it is unknown; put the synapse "
            "and its soma next to each other in a Chain"
        )
    if folded.config is not None:
        without = {"norm": None, "eta": None, "initial_gain": 1.0, "identity_norm": False}
        folded.config = {**folded.config, **without}  # which is built as it now is
        if any(isinstance(soma.neuron, Sided) for soma in folded.somas().values()):
            folded.config["neuron"] = {**folded.config["neuron"], "sided": True}
    return folded


def _places(model: nn.Module) -> Counter[nn.Module | Tensor]:
    """In how many modules, or places of one, every module and every parameter stands."""
    places: Counter[nn.Module | Tensor] = Counter()
    for module in model.modules():
        places.update(child for _, child in children(module))
        places.update(module.parameters(recurse=False))
    return places


@torch.no_grad()
def _merge(synapse: Synapse, norm: BatchNorm) -> None:
    scale, shift = norm.folded()
    weight = synapse.weight
    bias = torch.zeros_like(shift) if synapse.bias is None else synapse.bias.double()
    synapse.bias = nn.Parameter((scale * bias + shift).to(weight.dtype))
    scaled = weight.double() * scale.view(-1, *[1] * (weight.ndim - 1))
    weight.copy_(scaled.to(weight.dtype))


@torch.no_grad()
def fold_membrane(neuron: Neuron, norm: BatchNorm) -> None:
    """Make `neuron` fire at the membranes at which it fired behind `norm`.

    `s u + h >= u_th` is `u >= (u_th - h) / s` for s > 0, `u <= (u_th - h) / s` for s < 0, and for
    s = 0, or one so small that no number holds the threshold, `0 >= u_th - h`.
    """
    like, u_th = norm.weight, neuron.constants().u_th
    scale, shift = norm.folded()
    distance = torch.as_tensor(u_th).to(shift) - shift
    bar = (distance / scale.abs()).to(like)
    constant = ~bar.isfinite().view(-1, len(scale)).all(0)
    sided(neuron).hold_sides(
        bar=torch.where(constant, distance.to(like), bar),
        side=torch.where(constant, 0.0, scale.sign().to(like)),
        slope=torch.where(constant, 1.0, scale.abs().to(like)),
    )
