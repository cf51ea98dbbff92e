"""What is to be measured and where: the network, its inputs, the batch, the precision, the device;
and a row for each thing measured, even one that fails.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from quadspike.benchmark.record import Row, place_of
from quadspike.benchmark.timing import QUICK, Effort, Peak
from quadspike.data.geometry import GEOMETRIES, Geometry
from quadspike.errors import QuadspikeError, check_name
from quadspike.models import Network
from quadspike.training.network import make_network, to_device
from quadspike.training.recipe import Recipe
from quadspike.training.samples import random_batch


@dataclass(frozen=True)
class Setting:
    """A recipe on random data of a data set's shape."""

    recipe: Recipe
    geometry: Geometry

    def but(self, **changes: Any) -> Setting:
        """The same with other fields of the recipe."""
        return Setting(self.recipe.but(**changes), self.geometry)

    def network(self, device: torch.device) -> Network:
        """The network on the device, in training mode; its weights follow from the seed."""
        return to_device(make_network(self.recipe, self.geometry), device).train()

    def batch(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """Random inputs and labels."""
        return random_batch(self.recipe, self.geometry, self.recipe.batch_size, device)


def _setting(name: str, model: str, dataset: Any, steps: int, batch: int, **more: Any) -> Setting:
    # A small rate: labels are random, and a network that runs away would be no fair load.
    options = {"precision": "bf16", "lr": 1e-3, **more}
    recipe = Recipe(name, dataset, model, timesteps=steps, batch_size=batch, **options)
    return Setting(recipe, GEOMETRIES[dataset])


_WIDE: dict[str, Any] = {
    "stem_width": 128,
    "residual": "sum-then-fire",
    "shortcut_neuron": False,
}
SETTINGS: dict[str, Setting] = {
    setting.recipe.name: setting
    for setting in (
        _setting("resnet19", "resnet19", "cifar10", 2, 128),
        _setting("resnet19-wide", "resnet19", "cifar10", 2, 128, **_WIDE),
        _setting("vggsnn", "vggsnn", "cifar10-dvs", 10, 128, split="tebn"),
        _setting("resnet34", "resnet34", "imagenet", 4, 64),
        _setting("resnet8", "resnet8", "cifar10", 4, 32, precision="fp32"),
    )
}
"""By name. resnet19-wide has a 128-channel stem, sums before it fires and has no neuron on the
shortcuts; the others are as `create_model` makes them."""


def find_setting(name: str) -> Setting:
    """A setting by name.

    >>> find_setting("vggsnn").recipe.timesteps
    10
    """
    return SETTINGS[check_name("setting", name, SETTINGS)]


@dataclass(frozen=True)
class Job:
    """A setting on a device; `only` names the contenders wanted, all if there are none."""

    setting: Setting
    device: torch.device
    only: tuple[str, ...] = ()
    smoke: bool = False
    """See that everything runs; the times mean nothing."""

    @property
    def effort(self) -> Effort:
        return QUICK if self.smoke else Effort()

    def wants(self, name: str) -> bool:
        return not self.only or name in self.only


def attempt(job: Job, name: str, title: str, work: Callable[[], Row], **where: Any) -> Row:
    """The row of `work`, or of why it failed: one library's trouble must not end the run."""
    row = {"name": name, "title": title, **place_of(job.setting.recipe), **where}
    try:
        return {**row, **work()}
    except Exception as error:
        reason = " ".join(str(error).split())[:300]
        kind = "" if isinstance(error, QuadspikeError) else f"{type(error).__name__}: "
        trace = traceback.format_exc()[-4000:]
        return {**row, "error": f"{kind}{reason}", "traceback": trace}
    finally:
        Peak(job.device)  # frees what the work left
