"""What the paper reports is looked up by data, network, steps and loss."""

from __future__ import annotations

import pytest

from quadspike.recipes import create_recipe
from quadspike.records.paper import reported

SETTINGS = [
    ("cifar10-resnet19", {"timesteps": 4}, (96.49, 11, 1.253)),
    ("cifar100-resnet19", {"timesteps": 2}, (79.68, 5, 0.809)),
    ("cifar100-resnet19", {"timesteps": 4, "loss": "tet"}, (80.62, 11, 1.578)),
    ("cifar10-dvs-vggsnn", {"loss": "tet"}, (81.57, 1, 1.312)),
    ("imagenet-resnet34", {}, (70.52, 144, 6.402)),
]


@pytest.mark.parametrize(("name", "changes", "printed"), SETTINGS)
def test_the_paper_s_own_figures(name, changes, printed):
    found = reported(create_recipe(name, **changes))
    assert (found.accuracy[0], found.hours, found.energy_mj) == printed


@pytest.mark.parametrize(
    "recipe",
    [
        create_recipe("digits-cnn"),
        create_recipe("cifar10-resnet19", timesteps=3),
        create_recipe("cifar10-resnet19", loss="im"),
        create_recipe("cifar10-resnet8-short", timesteps=2),
    ],
)
def test_it_reports_nothing_of_other_settings(recipe):
    assert reported(recipe) is None
