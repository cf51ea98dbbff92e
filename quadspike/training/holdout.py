"""Training samples kept aside to make choices on, so that the test set only reports."""

from __future__ import annotations

import torch
from torch import Tensor

from quadspike.randomness import permutation
from quadspike.training.sizes import check_held_out


def hold_out(labels: Tensor, count: int, name: str) -> tuple[Tensor, Tensor]:
    """The places of the samples to train on, and of the `count` held out; both ascending.

    From every class in proportion to its size: equal classes differ by one at most. The same
    samples whatever the seed of a run, and fewer of them are among the more.

    >>> kept, held = hold_out(torch.tensor([0, 1, 0, 1, 0, 1]), 2, "toy")
    >>> len(kept), sorted((held % 2).tolist())
    (4, [0, 1])
    """
    check_held_out(count, len(labels), name)
    if not count:  # shuffling would take its time
        everything = torch.arange(len(labels))
        return everything, everything[:0]
    order = permutation(len(labels), 0, 0, "validation")
    shuffled = labels.cpu()[order]
    sizes = torch.bincount(shuffled)
    by_class = torch.argsort(shuffled, stable=True)
    number = torch.empty_like(by_class)  # of a sample within its class
    number[by_class] = torch.arange(len(labels)) - (sizes.cumsum(0) - sizes)[shuffled[by_class]]
    turn = torch.argsort((number.double() + 0.5) / sizes[shuffled], stable=True)
    return order[turn[count:]].sort().values, order[turn[:count]].sort().values
