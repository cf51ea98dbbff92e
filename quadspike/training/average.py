"""An average of the weights over the steps of a run."""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from quadspike.models import Network
from quadspike.neurons import Neuron


class Average:
    """`m += (1 - d) (w - m)` after each step, with `d = min(decay, (1 + t) / (10 + t))`, t from 0.

    The averages m are the parameters and running statistics of `network`, a second one that
    shares all else with the first. Statistics are averaged like the weights: a current's mean is
    linear in the weights before it, so the averaged weights have the average of the means, while
    the last statistics are those of the last weights.
    """

    def __init__(self, network: Network, decay: float) -> None:
        self._decay = decay
        theirs = network.state_dict(keep_vars=True)
        names = {id(t): name for name, t in theirs.items() if t.is_floating_point()}
        shared = {id(buffer): buffer for buffer in network.buffers() if id(buffer) not in names}
        self.network = copy.deepcopy(network, shared).eval().requires_grad_(False)
        ours = self.network.state_dict(keep_vars=True)
        self._followed: list[Tensor] = [theirs[name] for name in names.values()]
        self.tensors: list[Tensor] = [ours[name] for name in names.values()]
        self._neurons = [m for m in self.network.modules() if isinstance(m, Neuron)]

    @torch.no_grad()
    def follow(self, count: Tensor, spoilt: Tensor) -> None:
        """Take in the weights that the step after `count` others has left, if it was not spoilt."""
        done = count.double()
        decay = ((1 + done) / (10 + done)).clamp(max=self._decay)
        rate = (1 - decay) * (1 - spoilt)
        way = torch._foreach_sub(self._followed, self.tensors)
        torch._foreach_mul_(way, rate.to(way[0].dtype))
        torch._foreach_add_(self.tensors, way)
        for neuron in self._neurons:
            neuron.project()  # what a neuron allows need not be convex
