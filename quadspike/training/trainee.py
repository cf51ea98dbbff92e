"""What a run trains: the network, and beside it the heads that only training has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import torch
import torch.distributed as dist
from torch import Tensor, nn

from quadspike.aids.heads import Heads, Lesson, head_places
from quadspike.aids.shortcuts import Shortcuts
from quadspike.aids.sml import WIDEST, SurrogateModules
from quadspike.errors import QuadspikeError
from quadspike.losses import LOSSES, Level, im, last_cross_entropy, mean_cross_entropy, tet
from quadspike.models import Network
from quadspike.models.registry import seeded
from quadspike.norms import synchronize
from quadspike.randomness import Key, purpose
from quadspike.taps import Seen, Taps
from quadspike.training.manner import Manner
from quadspike.training.recipe import Recipe


class Loss(Protocol):
    """From logits `[T, B, classes]`, labels and where the membranes lie to a number."""

    def __call__(self, logits: Tensor, labels: Tensor, levels: Sequence[Level] = ()) -> Tensor: ...


def make_loss(recipe: Recipe) -> Loss:
    """The recipe's loss."""
    smoothing = recipe.label_smoothing

    def loss(logits: Tensor, labels: Tensor, levels: Sequence[Level] = ()) -> Tensor:
        if recipe.loss == "tet":
            return tet(logits, labels, recipe.tet_lambda, recipe.tet_phi, smoothing)
        if recipe.loss == "im":
            return im(logits, labels, levels, recipe.im_weight, smoothing)
        if recipe.loss == "lts":
            return last_cross_entropy(logits, labels, smoothing)
        return mean_cross_entropy(logits, labels, smoothing)

    return loss


class Trainee(nn.Module):
    """One module for the optimizer and for all workers; `network` is what remains of it.

    Called with a batch, gives its loss and the network's logits. `shared` says that other
    workers hold the rest of the batch. Whoever runs it says in which `manner`.
    """

    def __init__(self, network: Network, recipe: Recipe, shared: bool = False) -> None:
        super().__init__()
        readout = LOSSES[recipe.loss].readout
        if recipe.loss == "lts" and network.readout != readout:
            raise QuadspikeError(
                f"loss={recipe.loss!r} trains the last step alone, but the network's readout is "
                f"{network.readout!r}; make the network with readout={readout!r}"
            )
        if recipe.graded_epochs:
            for soma in network.somas().values():
                soma.neuron.check_grades()
        self.network, self._shared = network, shared
        self.manner = Manner()
        self.heads = make_heads(network, recipe)
        self._loss = make_loss(recipe)
        kinds = (*LOSSES[recipe.loss].taps, *(("output",) if self.heads else ()))
        self._taps = Taps(kinds) if kinds else None

    def forward(
        self, inputs: Tensor, labels: Tensor, progress: Tensor, key: Key | None = None
    ) -> tuple[Tensor, Tensor]:
        seen: Seen = {}
        inputs, steps = self.manner.show(inputs), self.manner.steps
        with grading(self.network, self.manner.graded):
            if self._taps is None:
                logits = self.network(inputs, key=key, timesteps=steps)
            else:
                logits, seen = self.network(inputs, self._taps, key, steps)
        levels = self._levels(seen)

        def loss(of: Tensor) -> Tensor:
            return self._loss(of, labels, levels)

        if self.heads is None:
            return loss(logits), logits
        outputs = [seen[place]["output"] for place in self.heads.places]
        lesson = Lesson(logits, labels, outputs, loss, self.network.predict, progress)
        return self.heads(lesson), logits

    def _levels(self, seen: Seen) -> list[Level]:
        """Where each layer's membranes lie, over the batch of all workers."""
        found = {label: values["mean"] for label, values in seen.items() if "mean" in values}
        if not found:
            return []
        means = torch.stack(list(found.values()))
        if self._shared:
            whole = means.detach().clone()
            dist.all_reduce(whole)
            # The value of all, this worker's gradient: DistributedDataParallel averages those.
            means = means + (whole / dist.get_world_size() - means).detach()
        somas = self.network.somas()
        return [
            Level(mean, somas[label.partition("@")[0]].neuron.threshold)
            for label, mean in zip(found, means, strict=True)
        ]


@contextmanager
def grading(network: Network, graded: bool) -> Iterator[None]:
    """Within it the network's neurons emit grades, if `graded`."""
    neurons = [soma.neuron for soma in network.somas().values()]
    for neuron in neurons:
        neuron.graded = graded
    try:
        yield
    finally:
        for neuron in neurons:
            neuron.graded = False


def make_heads(network: Network, recipe: Recipe) -> Heads | None:
    """The heads of the recipe's aid, their weights a function of the seed, where the network is."""
    if recipe.aid not in ("sml", "shortcuts"):
        return None
    places, width = head_places(network)
    assert network.config is not None
    classes = network.config["num_classes"]
    heads: Heads
    with seeded(recipe.seed ^ purpose(recipe.aid)):  # not the draws of the network's own weights
        if recipe.aid == "sml":
            # The published width in the paper's networks, and heads in proportion to small ones.
            narrow = min(WIDEST, width // 2)
            heads = SurrogateModules(
                places, classes, narrow, label_smoothing=recipe.label_smoothing
            )
        else:
            heads = Shortcuts(places, classes, recipe.shortcut_form, recipe.label_smoothing)
    synchronize(heads, recipe.sync_norm)
    mine = next(network.parameters())
    return heads.to(mine.device, mine.dtype).to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]
