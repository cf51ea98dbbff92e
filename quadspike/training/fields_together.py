"""Which of a recipe's fields go together, and why others do not."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, get_args

from quadspike import composition
from quadspike.data.events.aedat import SENSOR
from quadspike.data.events.cifar10dvs import SPLITS
from quadspike.errors import QuadspikeError, QuadspikeWarning
from quadspike.models.registry import check_gains
from quadspike.neurons import create_neuron
from quadspike.norms import create_norm
from quadspike.surrogates import Center

if TYPE_CHECKING:
    from quadspike.training.recipe import Recipe

RECORDINGS = ("digits-events", "cifar10-dvs")
"""Data sets of events, which become a frame a step."""
_OF_DATASETS: dict[str, tuple[object, tuple[str, ...]]] = {
    "split": (None, ("cifar10-dvs",)),
    "frames_by": (None, RECORDINGS),
    "frame_values": ("counts", RECORDINGS),
    "frame_size": (None, ("cifar10-dvs",)),
    "event_transform": ("paper", ("cifar10-dvs",)),
    "autoaugment": (False, ("cifar10", "cifar100")),
    "cutout": (0, ("cifar10", "cifar100", "imagenet")),
    "image_transform": ("paper", ("imagenet",)),
}
"""By field: what leaves everything as it is, and which data sets may have something else."""


def check_together(recipe: Recipe) -> None:
    """Refuse fields that do not go with each other; each by itself has been checked."""
    _check_window(recipe)
    _check_schedule(recipe)
    check_gains(recipe.norm, recipe.eta, recipe.initial_gain, recipe.identity_norm)
    composition.check(recipe.parts())
    _check_constants(recipe)
    if recipe.shortcut_form != "linear" and recipe.aid != "shortcuts":
        raise QuadspikeError(
            f"shortcut_form={recipe.shortcut_form!r} is for aid='shortcuts', got "
            f"aid={recipe.aid!r}; leave it out"
        )
    _check_dataset(recipe)


def _check_window(recipe: Recipe) -> None:
    """Refuse a window beside another surrogate, and the shape of one that is not there."""
    if recipe.window is not None and recipe.surrogate not in (None, "window"):
        raise QuadspikeError(
            f"window={recipe.window!r} places the analytic window, but "
            f"surrogate={recipe.surrogate!r} asks for another; leave one of them out"
        )
    if recipe.window is None and recipe.surrogate != "window":
        for field, usual in (("window_scale", 1), ("window_height", "one")):
            if getattr(recipe, field) != usual:
                raise QuadspikeError(
                    f"{field}={getattr(recipe, field)!r} shapes the analytic window: say where "
                    f"it lies with window={' or '.join(get_args(Center))}"
                )


def _check_schedule(recipe: Recipe) -> None:
    """Refuse what leaves nothing to train, or has nothing to change."""
    if recipe.trained_steps > recipe.timesteps:
        raise QuadspikeError(
            f"train_timesteps={recipe.train_timesteps} is more than timesteps="
            f"{recipe.timesteps}; training shows as many steps or fewer"
        )
    if recipe.full_epochs and recipe.trained_steps == recipe.timesteps:
        raise QuadspikeError(
            f"full_epochs={recipe.full_epochs} are for after epochs of fewer steps, but all show "
            f"{recipe.timesteps}; say how many the others show with train_timesteps"
        )
    if recipe.full_epochs > recipe.epochs:
        raise QuadspikeError(
            f"full_epochs={recipe.full_epochs} are more than all {recipe.epochs} epochs; show all "
            "steps in fewer"
        )
    if (recipe.small_size is None) != (recipe.small_epochs == 0):
        raise QuadspikeError(
            f"small_size={recipe.small_size} and small_epochs={recipe.small_epochs} go together: "
            "the side of the first epochs' images, and how many epochs these are"
        )
    for field, what in (("small_epochs", "images of full size"), ("graded_epochs", "spikes")):
        if (first := getattr(recipe, field)) >= recipe.epochs:
            raise QuadspikeError(
                f"{field}={first} leave none of the {recipe.epochs} epochs for {what}; make it less"
            )
    if recipe.warmup_epochs >= recipe.epochs:
        raise QuadspikeError(
            f"the warm-up of {recipe.warmup_epochs:g} epochs takes all of the {recipe.epochs}; "
            "shorten it"
        )
    if recipe.nesterov and not (recipe.optimizer in ("sgd", "muon") and recipe.momentum):
        raise QuadspikeError(
            f"nesterov is for sgd and muon with momentum, got optimizer={recipe.optimizer!r}, "
            f"momentum={recipe.momentum:g}; leave it out"
        )
    if recipe.batch_size % recipe.accumulate:
        raise QuadspikeError(
            f"a batch of {recipe.batch_size} does not fall into {recipe.accumulate} equal parts; "
            "choose a batch_size that accumulate divides"
        )


def _check_constants(recipe: Recipe) -> None:
    """Refuse what the neuron, its surrogate or the norm would refuse once a network is made."""
    if not (recipe.neuron_constants or recipe.graded_epochs):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QuadspikeWarning)  # told when it is made
        neuron = create_neuron(recipe.neuron_config())
    create_norm(recipe.norm, 1, neuron.threshold, 1.0, recipe.timesteps)
    neuron.surrogate.window(neuron)
    if recipe.graded_epochs:
        neuron.check_grades()


def _check_dataset(recipe: Recipe) -> None:
    for field, (usual, having) in _OF_DATASETS.items():
        given = getattr(recipe, field)
        if given != usual and recipe.dataset not in having:
            raise QuadspikeError(
                f"{field}={given!r} is for {' and '.join(having)}; leave it out for "
                f"{recipe.dataset}"
            )
    if recipe.dataset == "cifar10-dvs" and recipe.split is None:
        raise QuadspikeError(
            "CIFAR10-DVS has no official split, and accuracies differ by points between "
            f"them; name one with split: {', '.join(SPLITS)}"
        )
    if recipe.frame_size is not None and recipe.frame_size > SENSOR:
        raise QuadspikeError(
            f"frame_size={recipe.frame_size} is more than the {SENSOR} pixels of the sensor"
        )
    if recipe.small_size is not None and recipe.dataset in RECORDINGS:
        raise QuadspikeError(
            f"small_size shrinks images, and {recipe.dataset} has recordings; leave it out"
        )
    if recipe.cutout and recipe.image_transform == "usual":
        raise QuadspikeError(
            f"the usual transform of imagenet has no cutout, got {recipe.cutout}; set cutout=0"
        )


def check_shown_plainly(recipe: Recipe) -> None:
    """Refuse what is done only to data that are loaded by their name."""
    for field, (usual, _) in _OF_DATASETS.items():
        if field != "split" and getattr(recipe, field) != usual:
            raise QuadspikeError(
                f"{field}={getattr(recipe, field)!r} is for data that are loaded, not for Splits: "
                "leave it out, or give data=from_splits(recipe, training, test, augment=...)"
            )
