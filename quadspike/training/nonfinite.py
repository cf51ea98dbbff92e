"""Where a number that is none came from: the spoilt step again, slowly."""

from __future__ import annotations

import torch

from quadspike.training.sources import Source
from quadspike.training.step import Step, autocast
from quadspike.training.trainee import grading


def explain_non_finite(step: Step, source: Source, per_epoch: int) -> str:
    """Name the layer and the step; the weights still are those the step began with."""
    number = int(step.count)
    epoch, place = divmod(number, per_epoch)
    inputs, labels = next(iter(source.epoch(epoch, place)))
    where = _first_spoilt(step, inputs, labels)
    return (
        f"the loss or its gradient is not a finite number at step {number + 1} (epoch "
        f"{epoch + 1}): first in {where}; lower --lr, or add --clip 1 or a warm-up, and "
        "start anew; the weights are still those from before that step"
    )


def _first_spoilt(step: Step, inputs: torch.Tensor, labels: torch.Tensor) -> str:
    if not torch.isfinite(inputs).all():
        return "the input"
    for part, _, key in step.parts(inputs, labels):
        manner = step.trainee.manner
        with autocast(step.recipe, step.device), grading(step.network, manner.graded):
            logits, seen = step.network(manner.show(part), "finite", key, manner.steps)
        for layer, values in seen.items():
            if not values["finite"].all():
                return f"layer {layer!r}"
        if not torch.isfinite(logits).all():
            return "the logits"
    step.gradients(inputs, labels)
    named = [(n, p.grad) for n, p in step.trainee.named_parameters() if p.grad is not None]
    for name, grad in reversed(named):  # a gradient travels from the last layer to the first
        if not torch.isfinite(grad).all():
            return f"the gradient of {name.removeprefix('network.')!r}"
    return "the loss"
