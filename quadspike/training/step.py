"""One step of training, all of it on the device: nothing is read back, nothing is allocated
that depends on a value, so that the whole of it can be captured into one CUDA graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from quadspike.models import Network
from quadspike.neurons import Neuron
from quadspike.randomness import Key
from quadspike.training.average import Average
from quadspike.training.distributed import Workers
from quadspike.training.half import HalfWeights
from quadspike.training.recipe import Recipe
from quadspike.training.trainee import Trainee

LOSS, CORRECT, SEEN, NORM = range(4)
"""What `Step.totals` adds up: losses, right answers, samples, gradient norms (by sample)."""


def autocast(recipe: Recipe, device: torch.device) -> Any:
    """The precision in which synapses compute."""
    if recipe.precision == "bf16":
        return torch.autocast(device.type, torch.bfloat16)
    return nullcontext()


class Step:
    """Forward, loss, backward, clipping, update and average of the weights for one batch.

    A loss or gradient that is not finite raises `spoilt` on the device, and from then on no
    update happens: when the host looks, weights and `count` still are those of that step.
    """

    def __init__(
        self,
        trainee: Trainee,
        recipe: Recipe,
        optimizer: torch.optim.Optimizer,
        workers: Workers,
        device: torch.device,
        steps_per_epoch: int,
    ) -> None:
        self.trainee, self.network = trainee, trainee.network
        self.recipe, self.optimizer = recipe, optimizer
        self.workers, self.device = workers, device
        self.steps_per_epoch = steps_per_epoch
        self.parameters = [p for p in trainee.parameters() if p.requires_grad]
        neurons = [module for module in trainee.modules() if isinstance(module, Neuron)]
        buffers = [dict(neuron.named_buffers(recurse=False)) for neuron in neurons]
        self._evolving = [own["progress"] for own in buffers if "progress" in own]
        self._projected = [n for n in neurons if type(n).project is not Neuron.project]
        self.count = torch.zeros((), dtype=torch.int64, device=device)
        self.totals = torch.zeros(4, dtype=torch.float64, device=device)
        self.spoilt = torch.zeros((), device=device)
        optimizer.found_inf = self.spoilt  # type: ignore[attr-defined]
        optimizer.grad_scale = None  # type: ignore[attr-defined]
        self.average = Average(self.network, recipe.ema) if recipe.ema else None
        alone = recipe.precision == "bf16" and not workers.many
        self.half = HalfWeights(trainee) if alone else None
        self.model: nn.Module = trainee
        if workers.many:
            places = [device] if device.type == "cuda" else None
            self.model = DistributedDataParallel(trainee, device_ids=places)

    def __call__(self, inputs: Tensor, labels: Tensor) -> None:
        """Learn from one batch, this worker's part of the global one."""
        for parameter in self.parameters:
            parameter.grad = None
        self.gradients(inputs, labels)
        grads = [p.grad for p in self.parameters if p.grad is not None]
        norm = torch.nn.utils.get_total_norm(grads, foreach=True)
        if self.recipe.clip is not None:
            torch.nn.utils.clip_grads_with_norm_(
                self.parameters, self.recipe.clip, norm, foreach=True
            )
        self.totals[NORM] += norm.double() * len(labels)
        self._watch(norm)
        self.optimizer.step()
        with torch.no_grad():
            for neuron in self._projected:
                neuron.project()
        if self.average is not None:
            self.average.follow(self.count, self.spoilt)
        self.count += 1 - self.spoilt.long()

    @property
    def judged(self) -> Network:
        """The network that is evaluated and kept."""
        return self.network if self.average is None else self.average.network

    def gradients(self, inputs: Tensor, labels: Tensor) -> None:
        """The gradient of the mean loss, part by part; losses and right answers are counted."""
        count, progress = self.recipe.accumulate, self.progress()
        self._evolve(progress)
        for index, (part, answers, key) in enumerate(self.parts(inputs, labels), 1):
            with self._share_gradients(last=index == count), autocast(self.recipe, self.device):
                loss, logits = (self.half or self.model)(part, answers, progress, key)
                (loss / count).backward()
            if self.half:
                self.half.collect()
            with torch.no_grad():
                right = self.network.predict(logits).argmax(1) == answers
                self.totals[LOSS] += loss.double() * len(answers)
                self.totals[CORRECT] += right.sum()
                self.totals[SEEN] += len(answers)

    def resume(self, count: int) -> None:
        """Go on after `count` steps: what they leave behind that no weight holds."""
        self.count.fill_(max(0, count - 1))
        self._evolve(self.progress())
        self.count.fill_(count)

    def progress(self) -> Tensor:
        """Epochs done, as a share of all; counted on the device."""
        epoch = torch.div(self.count, self.steps_per_epoch, rounding_mode="floor")
        return epoch.float() / self.recipe.epochs

    def _evolve(self, progress: Tensor) -> None:
        for evolving in self._evolving:
            evolving.copy_(progress)

    def parts(self, inputs: Tensor, labels: Tensor) -> Iterator[tuple[Tensor, Tensor, Key]]:
        """This worker's samples of each part of the global batch, and their key."""
        count = self.recipe.accumulate
        size = len(labels) // count
        pieces = zip(inputs.split(size, inputs.ndim - 4), labels.split(size), strict=True)
        for index, (part, answers) in enumerate(pieces):
            first = (index * self.workers.world + self.workers.rank) * size
            yield part, answers, Key(self.recipe.seed, self.count, first)

    def _share_gradients(self, last: bool) -> Any:
        if isinstance(self.model, DistributedDataParallel) and not last:
            return self.model.no_sync()
        return nullcontext()

    def _watch(self, norm: Tensor) -> None:
        finite = torch.isfinite(norm) & torch.isfinite(self.totals[LOSS])
        torch.maximum(self.spoilt, (~finite).to(self.spoilt.dtype), out=self.spoilt)
        if self.workers.many:
            dist.all_reduce(self.spoilt, dist.ReduceOp.MAX)
