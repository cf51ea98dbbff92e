"""Initial membranes that are learned: a part of the network, not only of its training."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from quadspike.errors import QuadspikeError
from quadspike.models import Network
from quadspike.models.mode import evaluating
from quadspike.randomness import Key, of_batch
from quadspike.soma import Soma

SPREAD = 0.2
"""Of the initial membranes, in thresholds: U(-0.2, 0.2) where the threshold is 1."""


def learn_initial_membranes(network: Network, frame: Sequence[int], seed: int = 0) -> None:
    """Give every soma a learned `u(0)`, `[C, H, W]`, drawn from the seed and its name.

    `frame` is the shape of what the network is for: one such sample runs, to find the shapes
    inside. Membranes that are there already stay.

    >>> from quadspike import create_model
    >>> net = create_model("cnn", in_channels=1)
    >>> learn_initial_membranes(net, (1, 8, 8))
    >>> net.conv2.soma.initial_u.shape
    torch.Size([64, 4, 4])
    """
    mine = next(network.parameters())
    with evaluating(network), torch.no_grad():
        _, seen = network(mine.new_zeros(1, *frame), taps="membrane")
    somas = network.somas()
    for label, values in seen.items():
        if label not in somas:
            raise QuadspikeError(
                f"layer {label!r} is a layer run again, and one initial membrane cannot be that of "
                "two places; give each its own soma"
            )
        if somas[label].initial_u is None:
            somas[label].start_from(_drawn(somas[label], values["membrane"][0, 0], seed, label))


def _drawn(soma: Soma, like: Tensor, seed: int, label: str) -> Tensor:
    places = of_batch(tuple(like.shape), Key(seed, 0), f"{label}.initial_u", like.device)
    threshold = torch.as_tensor(soma.neuron.threshold, device=like.device).mean()
    return ((2 * places - 1) * SPREAD * threshold).to(like.dtype)
