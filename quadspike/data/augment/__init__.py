"""Augmentation on the device: batches of bytes, every draw a sample's own."""

from quadspike.data.augment.autoaugment import AutoAugment
from quadspike.data.augment.basic import Cutout, Normalize, Pipeline, RandomCrop, RandomFlip
from quadspike.data.augment.cifar import (
    CIFAR10_MEAN,
    CIFAR10_STD,
    CIFAR100_MEAN,
    CIFAR100_STD,
    cifar_test,
    cifar_train,
)

__all__ = [
    "CIFAR10_MEAN",
    "CIFAR10_STD",
    "CIFAR100_MEAN",
    "CIFAR100_STD",
    "AutoAugment",
    "Cutout",
    "Normalize",
    "Pipeline",
    "RandomCrop",
    "RandomFlip",
    "cifar_test",
    "cifar_train",
]
