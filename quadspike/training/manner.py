"""In which manner an epoch trains: what it shows, and what neurons emit."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor
from torch.nn import functional as F


@dataclass(frozen=True)
class Manner:
    """How the samples of an epoch are shown, and what neurons make of them."""

    steps: int | None = None
    """Time steps of a static sample; None for all."""
    graded: bool = False
    """Whether neurons emit grades instead of spikes."""
    size: int | None = None
    """The side images are shrunk to; None for their own."""

    def work(self, steps: int, side: int) -> float:
        """What a sample costs, as a share of all its steps at its own side."""
        shown = steps if self.steps is None else self.steps
        return shown / steps * (1.0 if self.size is None else (self.size / side) ** 2)

    def show(self, images: Tensor) -> Tensor:
        """Images `[B, C, H, W]` as large as this manner has them, each pixel the mean of those it
        covers; recordings as they are.
        """
        return images if self.size is None else F.adaptive_avg_pool2d(images, self.size)
