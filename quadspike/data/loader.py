"""Batches on the device, each a function of (seed, epoch, step) alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from quadspike.data.split import Split
from quadspike.errors import QuadspikeError, check_count
from quadspike.randomness import per_sample, permutation


@dataclass(frozen=True)
class Draw:
    """Where a batch's randomness comes from: its seed, its epoch, and which samples it holds."""

    seed: int | Tensor
    epoch: int | Tensor
    samples: Tensor
    tables: Tables | None = None

    def uniform(self, count: int, purpose: str) -> Tensor:
        """Draws in [0, 1), `[B, count]`, the same for a sample whatever batch it is in."""
        if self.tables is not None:
            return self.tables.uniform(count, purpose)[self.samples]
        return per_sample(count, self.samples, self.seed, self.epoch, purpose)


@dataclass(frozen=True)
class Tables:
    """The draws of every sample in an epoch, made on first use; a batch then only looks up.

    The same numbers as without: but a draw is a hundred small operations whatever its size,
    and on a GPU their launches would cost more than the augmentation itself.
    """

    seed: int
    epoch: int
    samples: Tensor
    made: dict[tuple[int, str], Tensor] = field(default_factory=dict)

    def uniform(self, count: int, purpose: str) -> Tensor:
        """`[samples, count]`."""
        if (count, purpose) not in self.made:
            draws = per_sample(count, self.samples, self.seed, self.epoch, purpose)
            self.made[count, purpose] = draws
        return self.made[count, purpose]


Transform = Callable[[Tensor, Draw], Tensor]
"""Samples as uint8 and their draw to what a model takes, each sample for itself: images
`[B, C, H, W]` to the same, clips `[B, T, C, H, W]` to time first, `[T, B, C, H, W]`."""

CHUNK_BYTES = 1 << 26


class Batch(NamedTuple):
    """Inputs as the model takes them, and labels."""

    inputs: Tensor
    labels: Tensor

    @classmethod
    def joined(cls, batches: Iterable[Batch]) -> Batch:
        """Several as one, in their order."""
        inputs, labels = zip(*batches, strict=True)
        return cls(torch.cat(inputs, inputs[0].ndim - 4), torch.cat(labels))  # clips: time first


@dataclass(frozen=True)
class Loader:
    """A split in batches, transformed on the split's device; one rank's share of them.

    `batch_size` is that of all `world` ranks together. Shuffled, step s is the same global
    batch whatever the world, and rank r has the r-th of its equal parts; the last partial batch
    is dropped, so that shapes never change. In order, every sample is there once: rank r has
    the r-th stretch of the split, so ranks may differ in their number of batches. Any epoch can
    be entered at any step.
    """

    split: Split
    batch_size: int
    transform: Transform
    seed: int = 0
    shuffle: bool = False
    rank: int = 0
    world: int = 1

    def __post_init__(self) -> None:
        check_count("batch_size", self.batch_size)
        check_count("world", self.world)
        if not 0 <= self.rank < self.world:
            raise QuadspikeError(f"rank must lie in 0..{self.world - 1}, got {self.rank}")
        if self.shuffle and self.batch_size % self.world:
            raise QuadspikeError(
                f"a batch of {self.batch_size} does not fall into equal parts for {self.world} "
                "ranks; choose a batch size that their number divides"
            )
        if not len(self.split):
            raise QuadspikeError(f"{self.split.name} holds no samples")
        if self.shuffle and self.batch_size > len(self.split):
            raise QuadspikeError(
                f"a batch of {self.batch_size} is larger than the {len(self.split)} samples of "
                f"{self.split.name}; lower the batch size"
            )

    def __len__(self) -> int:
        """Batches in an epoch of this rank."""
        if self.shuffle:
            return len(self.split) // self.batch_size
        return -(-len(self._stretch) // self._part)

    def epoch(self, epoch: int = 0, start: int = 0) -> Iterator[Batch]:
        """The batches of an epoch, from step `start` on."""
        if not 0 <= start <= len(self):
            raise QuadspikeError(f"an epoch starts at a step in 0..{len(self)}, got {start}")
        device = self.split.inputs.device
        order = self._order(epoch)
        tables = Tables(self.seed, epoch, torch.arange(len(self.split), device=device))
        for step in range(start, len(self), self._together):
            steps = range(step, min(step + self._together, len(self)))
            samples = order[steps[0] * self._part : (steps[-1] + 1) * self._part]
            draw = Draw(self.seed, epoch, samples, tables)
            inputs = self.transform(self.split.inputs[samples], draw)
            labels = self.split.labels[samples]
            axis = self.split.inputs.ndim - 4  # a model takes clips with time first
            if inputs.shape[axis : axis + 1] != (len(samples),):
                remedy = "; end it with .transpose(0, 1): models take time first" if axis else ""
                raise QuadspikeError(
                    f"the transform made {list(inputs.shape)} of {len(samples)} samples of "
                    f"{self.split.name}, whose number belongs on axis {axis}{remedy}"
                )
            yield from map(Batch, inputs.split(self._part, axis), labels.split(self._part))

    def _order(self, epoch: int) -> Tensor:
        """The samples of this rank, batch after batch."""
        device = self.split.inputs.device
        if not self.shuffle:
            return torch.arange(self._stretch.start, self._stretch.stop, device=device)
        whole = permutation(len(self.split), self.seed, epoch, device=device)
        whole = whole[: len(self) * self.batch_size]
        return whole.view(len(self), self.world, self._part)[:, self.rank].flatten()

    @property
    def _part(self) -> int:
        """Samples of a batch on this rank."""
        return -(-self.batch_size // self.world)

    @property
    def _stretch(self) -> range:
        """The samples of this rank where they come in order."""
        ends = (len(self.split) * rank // self.world for rank in (self.rank, self.rank + 1))
        return range(*ends)

    @property
    def _together(self) -> int:
        """Batches transformed at once: on a GPU many small launches cost more than the work."""
        bytes_of_batch = 4 * self._part * self.split.inputs[0].numel()
        return max(1, CHUNK_BYTES // bytes_of_batch)
