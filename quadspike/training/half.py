"""The synapses' weights in the precision they compute in, all cast at once.

Autocast makes the same copies, one launch a weight and one a gradient: at a hundred launches a
step they cost more than what they move.
"""

from __future__ import annotations

from typing import Any, get_args

import torch
from torch import Tensor, nn
from torch.func import functional_call

from quadspike.models.synapses import Synapse


class HalfWeights:
    """Runs a model with copies of its synapses' weights, and brings their gradients back.

    The copies and the gradients are those of autocast, bit for bit.
    """

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.weights = {
            f"{name}.{kind}".lstrip("."): parameter
            for name, module in model.named_modules()
            if type(module) in get_args(Synapse)
            for kind, parameter in module.named_parameters(recurse=False)
            if parameter.requires_grad
        }
        self.copies = {
            name: torch.empty_like(weight, dtype=torch.bfloat16).requires_grad_()
            for name, weight in self.weights.items()
        }

    def __call__(self, *args: Any, **options: Any) -> Any:
        """What the model gives, computed with the copies."""
        with torch.no_grad():
            torch._foreach_copy_(list(self.copies.values()), list(self.weights.values()))
        return functional_call(self.model, self.copies, args, options)

    @torch.no_grad()
    def collect(self) -> None:
        """Add the copies' gradients to those of the weights, in the weights' own precision."""
        new: tuple[list[Tensor], list[Tensor]] = [], []
        more: tuple[list[Tensor], list[Tensor]] = [], []
        for weight, copy in zip(self.weights.values(), self.copies.values(), strict=True):
            if copy.grad is None:
                continue
            totals, shares = new if weight.grad is None else more
            if weight.grad is None:
                weight.grad = torch.empty_like(weight)
            totals.append(weight.grad)
            shares.append(copy.grad)
            copy.grad = None
        if new[0]:
            torch._foreach_copy_(*new)
        if more[0]:
            torch._foreach_add_(*more)
