"""Which of a recipe's fields go with which data set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadspike.data.events.aedat import SENSOR
from quadspike.data.events.cifar10dvs import SPLITS
from quadspike.errors import QuadspikeError

if TYPE_CHECKING:
    from quadspike.training.recipe import Recipe

RECORDINGS = ("digits-events", "cifar10-dvs")
"""Data sets of events, which become a frame a step."""
_FRAMES: dict[str, tuple[object, tuple[str, ...]]] = {
    "frames_by": (None, RECORDINGS),
    "frame_values": ("counts", RECORDINGS),
    "frame_size": (None, ("cifar10-dvs",)),
    "event_transform": ("paper", ("cifar10-dvs",)),
}
"""By field: what leaves everything as it is, and which data sets may have something else."""


def check_dataset_fields(recipe: Recipe) -> None:
    """Refuse fields that the recipe's data set does not have, with the reason."""
    if recipe.dataset == "cifar10-dvs" and recipe.split is None:
        raise QuadspikeError(
            "CIFAR10-DVS has no official split, and accuracies differ by points between "
            f"them; name one with split: {', '.join(SPLITS)}"
        )
    if recipe.split is not None and recipe.dataset != "cifar10-dvs":
        raise QuadspikeError(f"split is for cifar10-dvs; leave it out for {recipe.dataset}")
    _check_frames(recipe)
    if recipe.small_size is not None and recipe.dataset in RECORDINGS:
        raise QuadspikeError(
            f"small_size shrinks images, and {recipe.dataset} has recordings; leave it out"
        )
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


def _check_frames(recipe: Recipe) -> None:
    for field, (usual, having) in _FRAMES.items():
        given = getattr(recipe, field)
        if given != usual and recipe.dataset not in having:
            why = "no recordings" if recipe.dataset not in RECORDINGS else "frames of its own"
            raise QuadspikeError(
                f"{field}={given!r} is for {' and '.join(having)}, and {recipe.dataset} has {why}; "
                "leave it out"
            )
    if recipe.frame_size is not None and recipe.frame_size > SENSOR:
        raise QuadspikeError(
            f"frame_size={recipe.frame_size} is more than the {SENSOR} pixels of the sensor"
        )
