"""The batches a recipe trains and is judged on, from splits in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

import torch
from torch import Tensor

from quadspike.data.augment import Pipeline
from quadspike.data.geometry import Geometry
from quadspike.data.loader import Batch, Draw, Loader, Transform
from quadspike.data.split import Split
from quadspike.data.transforms import standard_transform
from quadspike.errors import QuadspikeError
from quadspike.training.distributed import Workers, asked_workers, choose_device
from quadspike.training.holdout import hold_out
from quadspike.training.recipe import Recipe
from quadspike.training.sizes import check_batch


class Source(Protocol):
    """Batches by epoch, this worker's share of them; `Loader` and `StreamingLoader` are two."""

    def __len__(self) -> int: ...

    def epoch(self, epoch: int = 0, start: int = 0) -> Iterator[Batch]: ...


@dataclass(frozen=True)
class Sizes:
    """How many samples there are of each kind, over all workers."""

    train: int
    test: int
    validation: int = 0


@dataclass(frozen=True)
class TrainingData:
    """What a run learns from and is judged on.

    `validation` holds the training samples kept aside, if the recipe asks for them; `test` is
    always all of the test set.
    """

    train: Source
    test: Source
    validation: Source | None
    geometry: Geometry
    sizes: Sizes
    classes: tuple[str, ...]
    loaded: bool = False
    """Whether they are what the recipe's `dataset` names, with the transforms it asks for."""


def from_splits(
    recipe: Recipe,
    train: Split,
    test: Split,
    device: torch.device | None = None,
    workers: Workers | None = None,
    augment: Transform | None = None,
    plain: Transform | None = None,
) -> TrainingData:
    """Loaders of two splits in memory, moved to the device; for the user's own data too.

    Without device and workers they are those that `train` chooses by itself.
    Without transforms, images are normalised by the mean and std of each channel over the
    training images, and clips are counted in events, time first; `augment` for training,
    `plain` for the rest. What they give is cast to the recipe's type.
    """
    workers = asked_workers() if workers is None else workers
    device = choose_device("auto", workers) if device is None else device
    check_parts(recipe, workers)
    _check_pair(recipe, train, test)
    plain = standard_transform(train) if plain is None else plain
    augment = plain if augment is None else augment
    kept, held = hold_out(train.labels, recipe.validation, train.name)
    learned = train.subset(kept) if recipe.validation else train
    shape = train.inputs.shape

    def loader(split: Split, transform: Transform, parts: int = 0) -> Loader:
        shown = Pipeline((transform, Finish(recipe.precision)))
        batch = recipe.batch_size // (parts or recipe.accumulate)
        if not parts and device.type == "cuda":
            batch = max(batch, min(4 * batch, _EVALUATED))
        share = (workers.rank, workers.world)
        return Loader(split.to(device), batch, shown, recipe.seed, parts > 0, *share)

    return TrainingData(
        in_parts(recipe, workers, len(kept), lambda parts: loader(learned, augment, parts)),
        loader(test, plain),
        loader(train.subset(held), plain) if recipe.validation else None,
        Geometry(shape[-3], shape[-1], train.count, static=train.inputs.ndim == 4),
        Sizes(len(kept), len(test), len(held)),
        train.classes,
    )


_EVALUATED = 512
"""Samples up to which a GPU evaluates four batches at once: nothing is kept for a backward, and
few large launches take less time than many small ones. More would only take memory."""


@dataclass(frozen=True)
class Finish:
    """What ends every transform: the type the network computes in, images channels-last."""

    precision: str

    def __call__(self, x: Tensor, draw: Draw) -> Tensor:
        dtype = torch.float64 if self.precision == "fp64" else torch.float32
        layout = torch.channels_last if x.ndim == 4 else torch.preserve_format
        return x.to(dtype, memory_format=layout)


def check_parts(recipe: Recipe, workers: Workers) -> None:
    """Refuse a batch that workers and accumulated parts cannot share."""
    share = workers.share_of(recipe.batch_size)
    if share % recipe.accumulate:
        raise QuadspikeError(
            f"a batch of {recipe.batch_size} is {share} samples on each of {workers.world} "
            f"workers, which do not fall into accumulate={recipe.accumulate} equal parts"
        )


@dataclass(frozen=True)
class _InParts:
    """Batches put together from the `parts` they are computed in."""

    source: Source
    parts: int

    def __len__(self) -> int:
        return len(self.source) // self.parts

    def epoch(self, epoch: int = 0, start: int = 0) -> Iterator[Batch]:
        pieces = self.source.epoch(epoch, start * self.parts)
        for _ in range(start, len(self)):
            yield Batch.joined(islice(pieces, self.parts))


def in_parts(
    recipe: Recipe, workers: Workers, samples: int, make: Callable[[int], Source]
) -> Source:
    """Training batches; `make(n)` gives them in n parts each, one part after the other.

    Workers share each part, not the batch: the statistics of a part are then over the same
    samples whatever the number of workers.
    """
    parts = recipe.accumulate if workers.many else 1
    check_batch(recipe, samples)
    return make(1) if parts == 1 else _InParts(make(parts), parts)


def _check_pair(recipe: Recipe, train: Split, test: Split) -> None:
    shape = tuple(train.inputs.shape[1:])
    if tuple(test.inputs.shape[1:]) != shape or test.levels != train.levels:
        raise QuadspikeError(
            f"{test.name} must be like {train.name}: samples of {shape} in levels of "
            f"{train.levels}, got {tuple(test.inputs.shape[1:])} and {test.levels}"
        )
    if test.classes != train.classes:
        raise QuadspikeError(
            f"{train.name} and {test.name} must have the same classes in the same order, got "
            f"{train.classes[:5]} ({train.count}) and {test.classes[:5]} ({test.count})"
        )
    if shape[-1] != shape[-2]:
        raise QuadspikeError(f"{train.name}: samples must be square, got {shape}")
    if len(shape) == 4 and shape[0] != recipe.timesteps:
        raise QuadspikeError(
            f"{train.name}: clips of {shape[0]} frames, but timesteps={recipe.timesteps}; a clip "
            "has one frame a step"
        )
