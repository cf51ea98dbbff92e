"""The quadratic neuron that learns its own parabola and threshold."""

from __future__ import annotations

import torch

from quadspike.neurons.qif import QIF, real_fixed_points

_LEAST_A = 1e-3
"""What a becomes when an update makes it 0 or less."""
_ROOM = 0.01
"""a^2 (u_c - u_r)^2 where roots are put that had left no fixed points."""


class LearnedQIF(QIF):
    """`QIF` whose a, u1, u2 and u_th are learned, one of each a layer, from the paper's values on.

    `project` keeps them allowed. The surrogate's window is computed from their values at every
    call and so follows them, but passes no gradient to them.

    >>> neuron = LearnedQIF()
    >>> [name for name, _ in neuron.named_parameters()]
    ['a', 'u1', 'u2', 'u_th']
    """

    name = "qif-learned"
    learned = ("a", "u1", "u2", "u_th")

    @torch.no_grad()
    def project(self) -> None:
        """To allowed values: a > 0, u_r < u_c, max(u1, u2) <= u_th <= u_c; allowed ones stay.

        With gap = |u1 - u2| it is (u_c - u_r)^2 = (1/a - gap)^2 + 4 max(u1, u2) / a: roots that
        leave no fixed points, or the larger of which lies above u_c, are moved up together.

        >>> neuron = LearnedQIF()
        >>> _ = neuron.u_th.data.fill_(7.0)
        >>> neuron.project()
        >>> neuron.u_th.item()
        4.5
        """
        self.a.copy_(torch.where(self.a <= 0, _LEAST_A, self.a))
        upper, gap = torch.maximum(self.u1, self.u2), (self.u1 - self.u2).abs()
        apart, _, critical = real_fixed_points(self.a, self.u_sum, self.u_prod)
        allowed = (apart > 0) & (upper <= critical)
        raised = (_ROOM - (1 - self.a * gap).clamp(min=0) ** 2) / (4 * self.a)
        first = self.u1 >= self.u2
        u1, u2 = torch.where(first, raised, raised - gap), torch.where(first, raised - gap, raised)
        self.u1.copy_(torch.where(allowed, self.u1, u1))
        self.u2.copy_(torch.where(allowed, self.u2, u2))
        upper = torch.maximum(self.u1, self.u2)
        _, _, critical = real_fixed_points(self.a, self.u_sum, self.u_prod)
        u_th = torch.where(self.u_th > critical, critical, self.u_th)
        self.u_th.copy_(torch.where(u_th < upper, upper, u_th))
