"""From a recipe to the batches it trains and is judged on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from quadspike.data.augment import Normalize, Pipeline, cifar_test, cifar_train
from quadspike.data.augment.shift import RandomShift
from quadspike.data.cifar import load_cifar10, load_cifar100
from quadspike.data.digits import load_digits, load_event_digits
from quadspike.data.events.cifar10dvs import SENSOR, load_cifar10dvs
from quadspike.data.events.transforms import TimeFirst, dvs_train
from quadspike.data.geometry import GEOMETRIES, Geometry
from quadspike.data.imagenet import ImageNet
from quadspike.data.loader import Batch, Draw, Loader, Transform
from quadspike.data.progress import Progress
from quadspike.data.root import data_root, reading
from quadspike.data.split import Split
from quadspike.data.streaming import StreamingLoader
from quadspike.errors import QuadspikeError
from quadspike.training.distributed import Workers
from quadspike.training.field_values import OWN
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


def make_data(
    recipe: Recipe,
    root: Path | str | None,
    device: torch.device,
    workers: Workers,
    progress: Progress | None = None,
) -> TrainingData:
    """The loaders of a recipe's data set, which lies under `root` (see `data_root`).

    `progress` is told how far event recordings are made into frames.
    """
    _check_parts(recipe, workers)
    if recipe.dataset == OWN:
        raise QuadspikeError(
            "a recipe with dataset='own' needs its data: make them with from_splits(recipe, "
            "train, test, device, workers), or name a data set"
        )
    if recipe.dataset == "imagenet":
        return _imagenet(recipe, data_root(root) / "imagenet", device, workers)
    with reading():
        train, test = _load(recipe, root, progress)
    plain = _test_transform(recipe, train)
    augment = _training_transform(recipe, train, plain)
    return from_splits(recipe, train, test, device, workers, augment, plain)


def choose_data(
    recipe: Recipe,
    own: TrainingData | tuple[Split, Split] | None,
    root: Path | str | None,
    device: torch.device,
    workers: Workers,
) -> TrainingData:
    """The user's own data where given, a pair of splits or loaders; else the recipe's."""
    if own is None:
        return make_data(recipe, root, device, workers)
    if isinstance(own, TrainingData):
        if bool(recipe.validation) != (own.validation is not None):
            raise QuadspikeError(
                f"the recipe holds out {recipe.validation} samples, but the TrainingData given "
                f"has {'no' if own.validation is None else 'a'} validation source"
            )
        return own
    if not (isinstance(own, tuple | list) and [type(part) for part in own] == [Split, Split]):
        raise QuadspikeError(
            f"data must be a pair of Splits (training, test) or a TrainingData, got {type(own)}"
        )
    return from_splits(recipe, own[0], own[1], device, workers)


def from_splits(
    recipe: Recipe,
    train: Split,
    test: Split,
    device: torch.device,
    workers: Workers,
    augment: Transform | None = None,
    plain: Transform | None = None,
) -> TrainingData:
    """Loaders of two splits in memory, moved to the device; for the user's own data too.

    Without transforms, images are normalised by the mean and std of each channel over the
    training images, and clips are counted in events, time first; `augment` for training,
    `plain` for the rest. What they give is cast to the recipe's type.
    """
    _check_parts(recipe, workers)
    _check_pair(recipe, train, test)
    plain = standard_transform(train) if plain is None else plain
    augment = plain if augment is None else augment
    kept, held = hold_out(train.labels, recipe.validation, train.name)
    learned = train.subset(kept) if recipe.validation else train
    shape = train.inputs.shape

    def loader(split: Split, transform: Transform, parts: int = 0) -> Loader:
        shown = Pipeline((transform, _Finish(_dtype(recipe))))
        batch = recipe.batch_size // (parts or recipe.accumulate)
        if not parts and device.type == "cuda":
            batch = max(batch, min(4 * batch, _EVALUATED))
        share = (workers.rank, workers.world)
        return Loader(split.to(device), batch, shown, recipe.seed, parts > 0, *share)

    return TrainingData(
        _in_parts(recipe, workers, len(kept), lambda parts: loader(learned, augment, parts)),
        loader(test, plain),
        loader(train.subset(held), plain) if recipe.validation else None,
        Geometry(shape[-3], shape[-1], train.count, static=train.inputs.ndim == 4),
        Sizes(len(kept), len(test), len(held)),
        train.classes,
    )


_EVALUATED = 512
"""Samples up to which a GPU evaluates four batches at once: nothing is kept for a backward, and
few large launches take less time than many small ones. More would only take memory."""


def standard_transform(train: Split) -> Transform:
    """Images normalised by their own mean and std per channel, clips as events, time first.

    >>> images = torch.tensor([0, 255], dtype=torch.uint8).view(2, 1, 1, 1)
    >>> split = Split("toy", images, torch.tensor([0, 1]), ("dark", "light"))
    >>> standard_transform(split)(images, Draw(0, 0, torch.arange(2))).flatten().tolist()
    [-1.0, 1.0]
    """
    if train.inputs.ndim == 5:
        return TimeFirst(train.levels)
    values = torch.arange(256, dtype=torch.float64) / 255
    means, stds = [], []
    for channel in train.inputs.unbind(1):
        # From the counts of the 256 bytes: exact, and no float copy of the data.
        share = torch.bincount(channel.flatten().cpu(), minlength=256).double() / channel.numel()
        mean = float(share @ values)
        means.append(mean)
        stds.append(float(share @ (values - mean).square()) ** 0.5 or 1.0)
    return Normalize(tuple(means), tuple(stds))


@dataclass(frozen=True)
class _Finish:
    """What ends every transform: the type the network computes in, images channels-last."""

    dtype: torch.dtype

    def __call__(self, x: Tensor, draw: Draw) -> Tensor:
        layout = torch.channels_last if x.ndim == 4 else torch.preserve_format
        return x.to(self.dtype, memory_format=layout)


def _dtype(recipe: Recipe) -> torch.dtype:
    return torch.float64 if recipe.precision == "fp64" else torch.float32


def _check_parts(recipe: Recipe, workers: Workers) -> None:
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
            inputs, labels = zip(*islice(pieces, self.parts), strict=True)
            yield Batch(torch.cat(inputs, inputs[0].ndim - 4), torch.cat(labels))


def _in_parts(
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


_FRAME_SIZE = GEOMETRIES["cifar10-dvs"].size


def _load(
    recipe: Recipe, root: Path | str | None, progress: Progress | None
) -> tuple[Split, Split]:
    if recipe.dataset == "digits":
        return load_digits()
    if recipe.dataset == "digits-events":
        by = recipe.frames_by or "time"
        return load_event_digits(recipe.timesteps, by=by, values=recipe.frame_values)
    if recipe.dataset == "cifar10":
        return load_cifar10(root)
    if recipe.dataset == "cifar100":
        return load_cifar100(root)
    folder = data_root(root) / "cifar10-dvs"
    return load_cifar10dvs(
        folder,
        recipe.timesteps,
        # Every event counts as one where none is interpolated.
        None if recipe.frame_size == SENSOR else recipe.frame_size or _FRAME_SIZE,
        recipe.split,
        by=recipe.frames_by or "count",
        values=recipe.frame_values,
        progress=progress,
    )


def _test_transform(recipe: Recipe, train: Split) -> Transform:
    if recipe.dataset in ("cifar10", "cifar100"):
        return cifar_test(recipe.dataset)
    return standard_transform(train)


def _training_transform(recipe: Recipe, train: Split, plain: Transform) -> Transform:
    if recipe.dataset in ("cifar10", "cifar100"):
        return cifar_train(recipe.dataset, autoaugment=recipe.autoaugment, cutout=recipe.cutout)
    if recipe.dataset == "cifar10-dvs":
        return dvs_train(recipe.event_transform, levels=train.levels)
    if recipe.dataset == "digits":
        # On 8 x 8 pixels a crop of whole ones cuts strokes off, and a mirrored digit is none.
        return Pipeline((RandomShift(0.5), plain))
    return plain


def _imagenet(recipe: Recipe, root: Path, device: torch.device, workers: Workers) -> TrainingData:
    with reading():
        whole, test = (
            ImageNet(root, split, recipe.image_transform, cutout=recipe.cutout)
            for split in ("train", "val")
        )
    kept, held = hold_out(whole.labels, recipe.validation, whole.name)
    train = whole.subset(kept, augmented=True)

    def loader(files: ImageNet, parts: int = 0) -> StreamingLoader:
        files.pipeline = Pipeline((*files.pipeline.steps, _Finish(_dtype(recipe))))
        return StreamingLoader(
            files,
            workers.share_of(recipe.batch_size) // max(1, parts),
            _decoding_processes(),
            recipe.seed,
            parts > 0,
            workers.rank,
            workers.world,
            device,
        )

    return TrainingData(
        _in_parts(recipe, workers, len(train), lambda parts: loader(train, parts)),
        loader(test),
        loader(whole.subset(held, augmented=False)) if recipe.validation else None,
        Geometry(3, train.size, len(train.classes)),
        Sizes(len(train), len(test), len(held)),
        train.classes,
    )


def _decoding_processes() -> int:
    """This worker's share of the processors of its machine."""
    usable = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    # As `torchrun` says it.
    return max(1, usable // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
