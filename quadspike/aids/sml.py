"""Surrogate module learning: artificial heads give the layers before them a short gradient."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from quadspike.aids.heads import Heads, Lesson, Place
from quadspike.norms import BatchNorm
from quadspike.ops import compute_dtype

WIDEST = 256
_KERNELS = ((7, 2), (5, 2), (3, 1))
_SLOPE = 0.01


class SurrogateModules(Heads):
    """N heads on spikes averaged over time, which learn from the network and teach it.

    With `q` the network's scores, `q_i` those of head i and `sg` no gradient,

    `(1 - share) / (1 + N alpha) (L + alpha sum_i CE(q_i, y))
    + share / 2N sum_i [KL(sg(q) || q_i) + KL(sg(q_i) || q)]`

    where the divergences are of `softmax(q / temperature)` and L is the network's loss.
    """

    def __init__(
        self,
        places: Sequence[Place],
        classes: int,
        width: int = WIDEST,
        alpha: float = 0.5,
        share: float = 0.9,
        temperature: float = 3.0,
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(places, lambda c: SurrogateHead(c, width, classes), label_smoothing)
        self.alpha, self.share, self.temperature = alpha, share, temperature

    def forward(self, lesson: Lesson) -> Tensor:
        scores = lesson.predict(lesson.logits)
        wide = scores.to(compute_dtype(scores))
        answers = [
            head(output.mean(0)).to(wide.dtype)
            for head, output in zip(self.heads, lesson.outputs, strict=True)
        ]
        right = [self.cross_entropy(answer, lesson.labels) for answer in answers]
        apart = [self._divergence(wide, a) + self._divergence(a, wide) for a in answers]
        count = len(answers)
        labelled = lesson.loss(lesson.logits) + self.alpha * torch.stack(right).sum()
        both = self.share / (2 * count) * torch.stack(apart).sum()
        return (1 - self.share) / (1 + count * self.alpha) * labelled + both

    def _divergence(self, teacher: Tensor, pupil: Tensor) -> Tensor:
        wanted = (teacher.detach() / self.temperature).log_softmax(1)
        found = (pupil / self.temperature).log_softmax(1)
        return F.kl_div(found, wanted, reduction="batchmean", log_target=True)


class SurrogateHead(nn.Sequential):
    """Convolutions of 7, 5 and 3, an average of each quarter, and two linear layers.

    An input wider than the head is first narrowed by a convolution of 1.
    """

    def __init__(self, channels: int, width: int, classes: int) -> None:
        layers: list[nn.Module] = []
        for kernel, stride in ((1, 1), *_KERNELS) if channels > width else _KERNELS:
            conv = nn.Conv2d(channels, width, kernel, stride, padding=kernel // 2, bias=False)
            layers += [conv, BatchNorm(width), nn.LeakyReLU(_SLOPE)]
            channels = width
        hidden = nn.Linear(4 * width, 2 * width, bias=False)
        layers += [Quarters(), hidden, BatchNorm(2 * width), nn.LeakyReLU(_SLOPE)]
        super().__init__(*layers, nn.Linear(2 * width, classes))


class Quarters(nn.Module):
    """The mean of each quarter of an image, `[B, C, H, W]` to `[B, 4C]`.

    What `nn.AdaptiveAvgPool2d(2)` computes, but its gradient repeats bit for bit on a GPU.
    """

    def forward(self, x: Tensor) -> Tensor:
        quarters = [quarter for half in _halves(x) for quarter in _halves(half)]
        return torch.stack(quarters, 2).flatten(1)


def _halves(x: Tensor) -> tuple[Tensor, Tensor]:
    """The means of both halves of axis 2; a middle row belongs to both."""
    size = x.shape[2]
    count = (size + 1) // 2
    return x[:, :, :count].mean(2), x[:, :, size - count :].mean(2)
