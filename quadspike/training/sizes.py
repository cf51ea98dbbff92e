"""How many samples there are to train on, known of most data sets without their files."""

from __future__ import annotations

from dataclasses import replace

from quadspike.data.geometry import GEOMETRIES, Geometry
from quadspike.errors import QuadspikeError
from quadspike.training.recipe import Recipe

TRAINING_SAMPLES = {
    "digits": 1_438,
    "digits-events": 1_438,
    "cifar10": 50_000,
    "cifar100": 50_000,
    "imagenet": 1_281_167,
    "cifar10-dvs": 9_000,
}
TEST_SAMPLES = {
    "digits": 359,
    "digits-events": 359,
    "cifar10": 10_000,
    "cifar100": 10_000,
}
"""Of data sets that are never used in part; any folders of images can be read as `imagenet`."""


def known_geometry(recipe: Recipe) -> Geometry | None:
    """The form of a sample, where it is known without the files."""
    usual = GEOMETRIES.get(recipe.dataset)
    return usual and replace(usual, size=recipe.frame_size or usual.size)


def check_held_out(count: int, samples: int, name: str) -> None:
    """Refuse to hold out all samples of a data set."""
    if not 0 <= count < samples:
        raise QuadspikeError(
            f"validation={count} must leave some of the {samples:,} samples of {name} to "
            "train on; hold out fewer"
        )


def check_batch(recipe: Recipe, samples: int) -> None:
    """Refuse a batch of more samples than there are to train on."""
    if recipe.batch_size > samples:
        raise QuadspikeError(
            f"a batch of {recipe.batch_size} is larger than the {samples:,} samples to train on; "
            "lower batch_size or validation"
        )


def check_smaller(small: int, side: int, name: str) -> None:
    """Refuse to shrink images to what they are, or more."""
    if small >= side:
        raise QuadspikeError(
            f"small_size={small} shrinks images, and those of {name} have a side of {side}; make "
            "it less"
        )


def check_sizes(recipe: Recipe) -> None:
    """Refuse all of that before any data are there, as far as the data set is known.

    >>> check_sizes(Recipe("mine", "digits", "mlp", validation=1310, batch_size=128))
    """
    if samples := TRAINING_SAMPLES.get(recipe.dataset):
        check_held_out(recipe.validation, samples, recipe.dataset)
        check_batch(recipe, samples - recipe.validation)
    if recipe.small_size is not None and recipe.dataset in GEOMETRIES:
        check_smaller(recipe.small_size, GEOMETRIES[recipe.dataset].size, recipe.dataset)
