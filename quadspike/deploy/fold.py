"""Merging every normalisation into the synapse before it."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import torch
from torch import nn

from quadspike.errors import QuadspikeError
from quadspike.models.network import Network
from quadspike.norms import BatchNorm
from quadspike.soma import Soma

Synapse = nn.Conv1d | nn.Conv2d | nn.Linear


def pairs(
    model: nn.Module, kinds: tuple[type[nn.Module], ...] = (Soma,)
) -> Iterator[tuple[str, nn.Module | None, nn.Module]]:
    """Every module of `kinds` with its name and the module right before it in its chain."""
    for prefix, chain in list(model.named_modules()):
        if not isinstance(chain, nn.Sequential):
            continue
        before: nn.Module | None = None
        for name, module in list(chain.named_children()):
            if isinstance(module, kinds):
                yield f"{prefix}.{name}".lstrip("."), before, module
            before = module


def fold(model: Network) -> Network:
    """A copy for inference in which `W' = s W`, `b' = s b + shift`, and no norm is left.

    The copy gives the same spikes up to rounding at the threshold; `check_fold` counts.
    """
    folded = copy.deepcopy(model).eval()
    for name, synapse, module in pairs(folded, (Soma, BatchNorm)):
        norm = module.norm if isinstance(module, Soma) else module
        if not isinstance(norm, BatchNorm):
            continue
        if not isinstance(synapse, Synapse):
            found = type(synapse).__name__ if synapse is not None else "nothing"
            raise QuadspikeError(
                f"cannot fold layer {name!r}: its normalisation follows {found}, not a "
                "convolution or linear layer; put the soma right after its synapse"
            )
        _merge(synapse, norm)
        if isinstance(module, Soma):
            module.norm = None
        else:
            folded.set_submodule(name, nn.Identity())
    left = [name for name, module in folded.named_modules() if isinstance(module, BatchNorm)]
    if left:
        raise QuadspikeError(
            f"cannot fold {', '.join(left)}: the synapse before it is unknown; put the synapse "
            "and its soma next to each other in a Chain"
        )
    if folded.config is not None:
        folded.config = {**folded.config, "norm": None}  # which is built as it now is
    return folded


@torch.no_grad()
def _merge(synapse: Synapse, norm: BatchNorm) -> None:
    scale, shift = norm.folded()
    weight = synapse.weight
    bias = torch.zeros_like(shift) if synapse.bias is None else synapse.bias.double()
    synapse.bias = nn.Parameter((scale * bias + shift).to(weight.dtype))
    scaled = weight.double() * scale.view(-1, *[1] * (weight.ndim - 1))
    weight.copy_(scaled.to(weight.dtype))
