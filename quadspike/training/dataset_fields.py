"""Which of a recipe's fields go with which data set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadspike.data.events.cifar10dvs import SPLITS
from quadspike.errors import QuadspikeError

if TYPE_CHECKING:
    from quadspike.training.recipe import Recipe


def check_dataset_fields(recipe: Recipe) -> None:
    """Refuse fields that the recipe's data set does not have, with the reason."""
    if recipe.dataset == "cifar10-dvs" and recipe.split is None:
        raise QuadspikeError(
            "CIFAR10-DVS has no official split, and accuracies differ by points between "
            f"them; name one with split: {', '.join(SPLITS)}"
        )
    if recipe.split is not None and recipe.dataset != "cifar10-dvs":
        raise QuadspikeError(f"split is for cifar10-dvs; leave it out for {recipe.dataset}")
    if recipe.autoaugment and recipe.dataset not in ("cifar10", "cifar100"):
        raise QuadspikeError(
            f"autoaugment is for cifar10 and cifar100; leave it out for {recipe.dataset}"
        )
    if recipe.cutout and recipe.dataset not in ("cifar10", "cifar100", "imagenet"):
        raise QuadspikeError(
            f"cutout is for images in colour, got {recipe.cutout} for {recipe.dataset}"
        )
    if recipe.image_transform == "usual" and recipe.dataset != "imagenet":
        raise QuadspikeError(f"image_transform is for imagenet; leave it out for {recipe.dataset}")
    if recipe.cutout and recipe.image_transform == "usual":
        raise QuadspikeError(
            f"the usual transform of imagenet has no cutout, got {recipe.cutout}; set cutout=0"
        )
