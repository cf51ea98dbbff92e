"""The synapses of a network, and what stands right behind each."""

from __future__ import annotations

from collections.abc import Iterator

from torch import nn

from quadspike.soma import Soma

Synapse = nn.Conv1d | nn.Conv2d | nn.Linear


def pairs(
    model: nn.Module, kinds: tuple[type[nn.Module], ...] = (Soma,)
) -> Iterator[tuple[str, nn.Module | None, nn.Module]]:
    """Every module of `kinds` with its name and the module right before it in its chain; one that
    stands in several places comes with each.
    """
    for prefix, chain in list(model.named_modules()):
        if not isinstance(chain, nn.Sequential):
            continue
        before: nn.Module | None = None
        for name, module in children(chain):
            if isinstance(module, kinds):
                yield f"{prefix}.{name}".lstrip("."), before, module
            before = module


def children(module: nn.Module) -> list[tuple[str, nn.Module]]:
    """By name; `named_children` would leave out what stands in a second place."""
    return [(name, child) for name, child in module._modules.items() if child is not None]
