"""The optimizer, its learning rate, and which parameters decay."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from quadspike.errors import QuadspikeError
from quadspike.neurons import Neuron
from quadspike.norms import BatchNorm
from quadspike.soma import Soma
from quadspike.training.muon import Muon, normalised_weights
from quadspike.training.recipe import Recipe


def learning_rate(recipe: Recipe, step: int, steps_per_epoch: int) -> float:
    """A linear warm-up to `lr`, then a cosine to zero; `step` counts from 0.

    >>> recipe = Recipe("mine", dataset="digits", model="cnn", epochs=10, lr=1.0)
    >>> [round(learning_rate(recipe, step, 10), 3) for step in (0, 50, 100)]
    [1.0, 0.5, 0.0]
    """
    warmup = recipe.warmup_epochs * steps_per_epoch
    if step < warmup:
        return recipe.lr * min(1.0, (step + 1) / warmup)
    total = recipe.epochs * steps_per_epoch
    return recipe.lr * 0.5 * (1 + math.cos(math.pi * (step - warmup) / (total - warmup)))


def make_optimizer(recipe: Recipe, model: nn.Module) -> torch.optim.Optimizer:
    """SGD with momentum, Muon, or Adam with L2 decay.

    Only the weights of synapses decay, unless all do; those that Muon turns do not. A
    neuron's own parameters learn at its `rate_factor`.

    Its state exists from the start, as zeros: the first step is like every other, in a graph
    and out, and a checkpoint always holds the same tensors.
    """
    learned = [p for p in model.parameters() if p.requires_grad]
    exempt: set[Tensor] = set() if recipe.decay_all else _exempt(model)
    neurons = [module for module in model.modules() if isinstance(module, Neuron)]
    factors: dict[Tensor, float] = {p: n.rate_factor for n in neurons for p in n.parameters()}
    turning = set(normalised_weights(model)) if recipe.optimizer == "muon" else set()
    if recipe.optimizer == "muon" and not turning:
        raise QuadspikeError(
            "optimizer='muon' turns the weights of synapses right before a normalisation, and this "
            "network has none; use 'sgd' or 'adam'"
        )
    factors.update(dict.fromkeys(turning, recipe.turn / recipe.lr))
    exempt |= turning
    kinds: dict[tuple[bool, float, bool], list[nn.Parameter]] = {}
    for parameter in learned:
        kind = parameter not in exempt, factors.get(parameter, 1.0), parameter in turning
        kinds.setdefault(kind, []).append(parameter)
    device = learned[0].device

    def rate(factor: float) -> float | Tensor:
        """On a GPU a tensor, so that a captured step reads it anew each time."""
        value = factor * recipe.lr
        return torch.tensor(value, device=device) if device.type == "cuda" else value

    groups: list[dict[str, Any]] = [
        {
            "params": parameters,
            "weight_decay": recipe.weight_decay if decays else 0.0,
            "lr": rate(factor),
            "factor": factor,
            "turns": turns,
        }
        for (decays, factor, turns), parameters in kinds.items()
    ]
    optimizer: torch.optim.Optimizer
    slots: tuple[str, ...]
    having: Iterable[Tensor]
    if recipe.optimizer in ("sgd", "muon"):
        kind_of = Muon if recipe.optimizer == "muon" else torch.optim.SGD
        optimizer = kind_of(groups, momentum=recipe.momentum, nesterov=recipe.nesterov, fused=True)
        slots, having = ("momentum_buffer",), learned if recipe.momentum else turning
    else:
        capturable = device.type == "cuda"
        optimizer = torch.optim.Adam(groups, betas=(0.9, 0.999), fused=True, capturable=capturable)
        slots, having = ("exp_avg", "exp_avg_sq"), learned
    for weight in having:
        state = {slot: torch.zeros_like(weight) for slot in slots}
        if recipe.optimizer == "adam":
            state["step"] = torch.zeros((), device=device)
        optimizer.state[weight] = state
    return optimizer


def _exempt(model: nn.Module) -> set[Tensor]:
    """What does not decay: all but the weights of synapses."""
    apart = {
        parameter
        for module in model.modules()
        if isinstance(module, Neuron | BatchNorm)
        for parameter in module.parameters()
    }
    somas = [module for module in model.modules() if isinstance(module, Soma)]
    apart |= {soma.initial_u for soma in somas if soma.initial_u is not None}
    return apart | {parameter for parameter in model.parameters() if parameter.ndim < 2}


def set_learning_rate(optimizer: torch.optim.Optimizer, lr: float) -> None:
    """The rate of the next step, for every group its share."""
    for group in optimizer.param_groups:
        own = group["factor"] * lr
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(own)
        else:
            group["lr"] = own


def optimizer_tensors(optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """The optimizer's state by parameter name and slot."""
    return {
        f"{name}.{slot}": value
        for name, parameter in model.named_parameters()
        for slot, value in optimizer.state.get(parameter, {}).items()
    }
