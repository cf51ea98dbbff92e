"""Backpropagation shortcuts: a linear head after every stage, whose say fades with training.

A reconstruction. Published are heads that only training has, a loss at the output and one at
every head, and a balance that starts on the heads and moves to the output; the form of the heads
and the balance's course are ours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from quadspike.aids.heads import Heads, Lesson, Place
from quadspike.errors import check_name

ShortcutForm = Literal["linear", "cosine", "fixed", "sum"]


class Shortcuts(Heads):
    """`L + w sum_l CE(b_l, y)`, `b_l` the readout of `Linear(mean over space of spikes)`.

    `w` is 1 at first and, by the share `p` of epochs that are done: `1 - p` ("linear"),
    `(1 + cos(pi p)) / 2` ("cosine"), 1 ("fixed"). "sum" is one loss of the logits
    `O(t) + (1 - p) sum_l b_l(t)`.
    """

    def __init__(
        self,
        places: Sequence[Place],
        classes: int,
        form: ShortcutForm = "linear",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(places, lambda channels: nn.Linear(channels, classes), label_smoothing)
        self.form = check_name("form of shortcuts", form, get_args(ShortcutForm))

    def forward(self, lesson: Lesson) -> Tensor:
        logits = [
            head(output.mean((-2, -1)))
            for head, output in zip(self.heads, lesson.outputs, strict=True)
        ]
        weight = self.weight(lesson.progress)
        if self.form == "sum":
            return lesson.loss(lesson.logits + weight * torch.stack(logits).sum(0))
        losses = [self.cross_entropy(lesson.predict(each), lesson.labels) for each in logits]
        return lesson.loss(lesson.logits) + weight * torch.stack(losses).sum()

    def weight(self, progress: Tensor) -> Tensor:
        """What the heads count for."""
        if self.form == "fixed":
            return torch.ones_like(progress)
        if self.form == "cosine":
            return 0.5 * (1 + torch.cos(math.pi * progress))
        return 1 - progress
