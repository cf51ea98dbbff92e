"""Heads beside a network: what they are told, and where they stand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch.nn.functional as F
from torch import Tensor, nn

from quadspike.errors import QuadspikeError
from quadspike.models import Network
from quadspike.models.registry import stages
from quadspike.ops import compute_dtype
from quadspike.soma import Soma


class Lesson(NamedTuple):
    """What a step of training knows once the network has answered."""

    logits: Tensor
    """`[T, B, classes]`."""
    labels: Tensor
    outputs: list[Tensor]
    """`[T, B, C, H, W]` of every place the heads stand at."""
    loss: Callable[[Tensor], Tensor]
    """The loss of logits on these labels."""
    predict: Callable[[Tensor], Tensor]
    """Scores `[B, classes]` from the logits of every step, as the network is read out."""
    progress: Tensor
    """Epochs done, as a share of all."""


class Place(NamedTuple):
    """A layer whose output heads read, and its channels."""

    layer: str
    channels: int


class Heads(nn.Module):
    """Called with a `Lesson`, gives the loss of the network and of the heads together."""

    def __init__(
        self, places: Sequence[Place], make: Callable[[int], nn.Module], label_smoothing: float
    ) -> None:
        super().__init__()
        self.places = tuple(place.layer for place in places)
        self.heads = nn.ModuleList(make(place.channels) for place in places)
        self.label_smoothing = label_smoothing

    def cross_entropy(self, scores: Tensor, labels: Tensor) -> Tensor:
        """That of a head's scores `[B, classes]`, in at least float32."""
        wide = scores.to(compute_dtype(scores))
        return F.cross_entropy(wide, labels, label_smoothing=self.label_smoothing)


def head_places(network: Network) -> tuple[list[Place], int]:
    """The ends of all stages but the last, which has the classifier, and that one's channels."""
    ends = stages(network)
    if len(ends) < 2:
        raise QuadspikeError(
            "heads stand after a network's stages, and this network has none; use one with "
            "convolutions from create_model"
        )
    *places, last = (Place(end, _channels(network.get_submodule(end))) for end in ends)
    return places, last.channels


def _channels(layer: nn.Module) -> int:
    *_, soma = (module for module in layer.modules() if isinstance(module, Soma))
    return soma.channels
