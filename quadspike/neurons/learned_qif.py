"""The quadratic neuron that learns its own parabola and threshold."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from quadspike.neurons.qif import QIF, real_fixed_points

_LEAST_A = 1e-3
"""What a becomes when an update makes it 0 or less."""
_ROOM = 0.01
"""a^2 (u_c - u_r)^2 where roots are put that had left no fixed points."""


def largest_stable_a(upper: Tensor, gap: Tensor) -> Tensor:
    """The largest a with (1 - a gap)^2 + 4 a upper <= 4, that is a (u_c - u_r) <= 2.

    >>> largest_stable_a(torch.tensor(0.5), torch.tensor(0.5)).item()
    2.0
    """
    half = 2 * upper - gap
    root = torch.hypot(half, math.sqrt(3) * gap)
    below = torch.where(gap > 0, (root - half) / gap / gap, math.inf)
    return torch.where(half > 0, 3 / (half + root), below)  # no cancellation in either


class LearnedQIF(QIF):
    """`QIF` whose a, u1, u2 and u_th are learned, one of each a layer, from the paper's values on.

    `project` keeps them allowed. Each is felt by every membrane of its layer, so that its gradient
    is the sum of very many: they learn at a hundredth of the rate. The surrogate's window is
    computed from their values at every call and so follows them, but passes no gradient to them.
    Where a or a root is given per channel, each channel has all of them.

    >>> neuron = LearnedQIF()
    >>> [name for name, _ in neuron.named_parameters()]
    ['a', 'u1', 'u2', 'u_th']
    """

    name = "qif-learned"
    learned = ("a", "u1", "u2", "u_th")
    rate_factor = 0.01

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # What `project` moves is as many numbers as what it is moved by.
        a, u1, u2 = torch.broadcast_tensors(self.a, self.u1, self.u2)
        u_th = self.u_th.expand(torch.broadcast_shapes(self.u_th.shape, a.shape))
        for name, value in zip(self.learned, (a, u1, u2, u_th), strict=True):
            if value.shape != getattr(self, name).shape:
                setattr(self, name, nn.Parameter(value.detach().clone()))

    @torch.no_grad()
    def project(self) -> None:
        """To allowed values: a > 0, u_r < u_c, max(u1, u2) <= u_th <= u_c, and a resting point
        that is stable, a (u_c - u_r) <= 2; allowed ones stay.

        With gap = |u1 - u2| it is (u_c - u_r)^2 = (1/a - gap)^2 + 4 max(u1, u2) / a: roots that
        leave no fixed points, or the larger of which lies above u_c, are moved up together. An a
        beyond stability is lowered, which never makes allowed roots forbidden.

        >>> neuron = LearnedQIF()
        >>> _ = neuron.u_th.data.fill_(7.0)
        >>> neuron.project()
        >>> neuron.u_th.item()
        4.5
        """
        upper, gap = torch.maximum(self.u1, self.u2), (self.u1 - self.u2).abs()
        self.a.copy_(torch.where(self.a <= 0, _LEAST_A, self.a))
        apart, _, critical = real_fixed_points(self.a, self.u_sum, self.u_prod)
        allowed = (apart > 0) & (upper <= critical)
        raised = (_ROOM - (1 - self.a * gap).clamp(min=0) ** 2) / (4 * self.a)
        first = self.u1 >= self.u2
        u1, u2 = torch.where(first, raised, raised - gap), torch.where(first, raised - gap, raised)
        self.u1.copy_(torch.where(allowed, self.u1, u1))
        self.u2.copy_(torch.where(allowed, self.u2, u2))
        upper = torch.maximum(self.u1, self.u2)
        self.a.copy_(torch.minimum(self.a, largest_stable_a(upper, gap)))
        _, _, critical = real_fixed_points(self.a, self.u_sum, self.u_prod)
        u_th = torch.where(self.u_th > critical, critical, self.u_th)
        self.u_th.copy_(torch.where(u_th < upper, upper, u_th))
