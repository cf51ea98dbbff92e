"""The data sets that a recipe can name."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import torch

from quadspike.data.augment import Pipeline
from quadspike.data.cifar import load_cifar10, load_cifar100
from quadspike.data.digits import load_digits, load_event_digits
from quadspike.data.events.aedat import SENSOR
from quadspike.data.events.cifar10dvs import load_cifar10dvs
from quadspike.data.geometry import GEOMETRIES, Geometry
from quadspike.data.imagenet import ImageNet
from quadspike.data.processors import usable_processors
from quadspike.data.root import data_root, reading
from quadspike.data.split import Split
from quadspike.data.streaming import StreamingLoader
from quadspike.data.transforms import plain_transform, training_transform
from quadspike.errors import QuadspikeError
from quadspike.training.distributed import Workers
from quadspike.training.field_values import OWN
from quadspike.training.holdout import hold_out
from quadspike.training.recipe import Recipe
from quadspike.training.sources import (
    Finish,
    Sizes,
    TrainingData,
    check_parts,
    from_splits,
    in_parts,
)


def make_data(
    recipe: Recipe, root: Path | str | None, device: torch.device, workers: Workers
) -> TrainingData:
    """The loaders of a recipe's data set, which lies under `root` (see `data_root`)."""
    check_parts(recipe, workers)
    if recipe.dataset == OWN:
        raise QuadspikeError(
            "a recipe with dataset='own' needs its data: give data=(training, test), two "
            "quadspike.data.Splits or what from_splits makes of them, or name a data set"
        )
    if recipe.dataset == "imagenet":
        return _imagenet(recipe, data_root(root) / "imagenet", device, workers)
    with reading():
        train, test = _load(recipe, root)
    plain = plain_transform(recipe.dataset, train)
    augment = training_transform(
        recipe.dataset,
        train,
        autoaugment=recipe.autoaugment,
        cutout=recipe.cutout,
        event_transform=recipe.event_transform,
    )
    return replace(from_splits(recipe, train, test, device, workers, augment, plain), loaded=True)


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
        parts = own if isinstance(own, tuple | list) else (own,)
        raise QuadspikeError(
            "data must be a pair of Splits (training, test) or a TrainingData, got "
            f"{', '.join(type(part).__name__ for part in parts)}; make tensors a "
            "quadspike.data.Split(name, inputs, labels, classes)"
        )
    return from_splits(recipe, own[0], own[1], device, workers)


def _load(recipe: Recipe, root: Path | str | None) -> tuple[Split, Split]:
    if recipe.dataset == "digits":
        return load_digits()
    if recipe.dataset == "digits-events":
        by = recipe.frames_by or "time"
        return load_event_digits(recipe.timesteps, by=by, values=recipe.frame_values)
    if recipe.dataset == "cifar10":
        return load_cifar10(root)
    if recipe.dataset == "cifar100":
        return load_cifar100(root)
    size = recipe.frame_size or GEOMETRIES["cifar10-dvs"].size
    return load_cifar10dvs(
        data_root(root) / "cifar10-dvs",
        recipe.timesteps,
        None if size == SENSOR else size,  # every event counts as one where none is interpolated
        recipe.split,
        by=recipe.frames_by or "count",
        values=recipe.frame_values,
    )


def _imagenet(recipe: Recipe, root: Path, device: torch.device, workers: Workers) -> TrainingData:
    with reading():
        whole, test = (
            ImageNet(root, split, recipe.image_transform, cutout=recipe.cutout)
            for split in ("train", "val")
        )
    kept, held = hold_out(whole.labels, recipe.validation, whole.name)
    train = whole.subset(kept, augmented=True)

    def loader(files: ImageNet, parts: int = 0) -> StreamingLoader:
        files.pipeline = Pipeline((*files.pipeline.steps, Finish(recipe.precision)))
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
        in_parts(recipe, workers, len(train), lambda parts: loader(train, parts)),
        loader(test),
        loader(whole.subset(held, augmented=False)) if recipe.validation else None,
        Geometry(3, train.size, len(train.classes)),
        Sizes(len(train), len(test), len(held)),
        train.classes,
        loaded=True,
    )


def _decoding_processes() -> int:
    """This worker's share of the processors of its machine."""
    # As `torchrun` says it.
    return max(1, usable_processors() // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
