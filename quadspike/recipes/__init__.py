"""Settings to start from, each a function that returns a `Recipe`; by name, `create_recipe`."""

from quadspike.recipes.cifar import (
    cifar10_resnet8_short,
    cifar10_resnet19,
    cifar10_resnet19_short,
    cifar10_resnet19_strong,
    cifar10_speedrun,
    cifar100_resnet19,
    cifar100_resnet19_short,
)
from quadspike.recipes.cifar10dvs import cifar10dvs_resnet19, cifar10dvs_vggsnn
from quadspike.recipes.digits import digits_cnn, digits_cnn_short, digits_events_cnn, digits_mlp
from quadspike.recipes.imagenet import imagenet_resnet34
from quadspike.recipes.registry import RECIPES, Entry, create_recipe, paper_figure

__all__ = [
    "RECIPES",
    "Entry",
    "cifar10_resnet8_short",
    "cifar10_resnet19",
    "cifar10_resnet19_short",
    "cifar10_resnet19_strong",
    "cifar10_speedrun",
    "cifar10dvs_resnet19",
    "cifar10dvs_vggsnn",
    "cifar100_resnet19",
    "cifar100_resnet19_short",
    "create_recipe",
    "digits_cnn",
    "digits_cnn_short",
    "digits_events_cnn",
    "digits_mlp",
    "imagenet_resnet34",
    "paper_figure",
]
