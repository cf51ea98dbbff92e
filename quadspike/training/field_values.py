"""What each field of a recipe may be by itself."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, get_args

from quadspike.aids.shortcuts import ShortcutForm
from quadspike.data.events.cifar10dvs import SPLITS
from quadspike.data.events.frames import SLICES, VALUES
from quadspike.data.events.transforms import STYLES
from quadspike.errors import QuadspikeError, check_count, check_name, is_number
from quadspike.models import list_models
from quadspike.models.resnet import RESIDUALS
from quadspike.neurons import NEURONS
from quadspike.norms import NORMS
from quadspike.ops import BACKENDS
from quadspike.surrogates import SURROGATES, Height, check_center

if TYPE_CHECKING:
    from quadspike.training.recipe import Recipe

OWN = "own"
"""In place of a data set's or a model's name: `train` is given one."""

Dataset = Literal[
    "digits", "digits-events", "cifar10", "cifar100", "imagenet", "cifar10-dvs", "own"
]
LossName = Literal["ce", "tet", "im", "lts"]
AidName = Literal["sml", "shortcuts", "imp"]
OptimizerName = Literal["sgd", "muon", "adam"]
Precision = Literal["fp32", "bf16", "fp64"]
ImageTransform = Literal["paper", "usual"]


def check_values(recipe: Recipe) -> None:
    """Refuse a field's value that no recipe can have, whatever the others are."""
    if not isinstance(recipe.name, str) or not recipe.name.strip():
        raise QuadspikeError(f"name must be a text to call the run by, got {recipe.name!r}")
    for field, allowed in _NAMES.items():
        if getattr(recipe, field) is not None or field not in _OPTIONAL:
            check_name(field, getattr(recipe, field), allowed)
    if recipe.window is not None:
        check_center("window", recipe.window)
    for field in ("timesteps", "epochs", "batch_size", "accumulate", "evaluate_every"):
        check_count(field, getattr(recipe, field))
    for field in ("stem_width", "train_timesteps", "small_size", "frame_size"):
        if getattr(recipe, field) is not None:
            check_count(field, getattr(recipe, field))
    for field in ("full_epochs", "small_epochs", "graded_epochs", "cutout", "validation", "seed"):
        value = getattr(recipe, field)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise QuadspikeError(f"{field} must be a whole number >= 0, got {value!r}")
    if recipe.seed >= 2**63:
        raise QuadspikeError(f"seed must be below 2^63, got {recipe.seed}")
    for flag in (field.name for field in dataclasses.fields(recipe) if field.type == "bool"):
        if not isinstance(getattr(recipe, flag), bool):
            raise QuadspikeError(f"{flag} must be True or False, got {getattr(recipe, flag)!r}")
    for field, (low, high) in _RANGES.items():
        value = getattr(recipe, field)
        if not (is_number(value) and low <= value <= high):
            end = "1)" if high == _BELOW_ONE else f"{high:g}]"
            bound = f"in [{low:g}, {end}" if math.isfinite(high) else f">= {low:g}"
            raise QuadspikeError(f"{field} must be a number {bound}, got {value!r}")
    for field in _POSITIVE:
        value = getattr(recipe, field)
        missing = value is None and field in _OPTIONAL
        if not (missing or (is_number(value) and value > 0)):
            raise QuadspikeError(f"{field} must be a number > 0, got {value!r}")


_OPTIONAL = ("surrogate", "aid", "split", "frames_by", "clip")
_POSITIVE = ("lr", "clip", "window_scale")
_NAMES: dict[str, Iterable[str]] = {
    "dataset": get_args(Dataset),
    "model": (*list_models(), OWN),
    "neuron": NEURONS,
    "surrogate": SURROGATES,
    "window_height": get_args(Height),
    "norm": NORMS,
    "residual": tuple(RESIDUALS),
    "loss": get_args(LossName),
    "aid": get_args(AidName),
    "shortcut_form": get_args(ShortcutForm),
    "optimizer": get_args(OptimizerName),
    "precision": get_args(Precision),
    "image_transform": get_args(ImageTransform),
    "split": tuple(SPLITS),
    "frames_by": SLICES,
    "frame_values": VALUES,
    "event_transform": STYLES,
    "backend": BACKENDS,
}
_BELOW_ONE = math.nextafter(1.0, 0.0)
_RANGES: dict[str, tuple[float, float]] = {
    "momentum": (0, _BELOW_ONE),
    "turn": (0, 1),
    "dropout": (0, _BELOW_ONE),
    "ema": (0, _BELOW_ONE),
    "label_smoothing": (0, _BELOW_ONE),
    "tet_lambda": (0, 1),
    "tet_phi": (-1e6, 1e6),
    "im_weight": (0, math.inf),
    "weight_decay": (0, math.inf),
    "warmup_epochs": (0, math.inf),
}
