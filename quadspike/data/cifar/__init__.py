"""CIFAR-10 and CIFAR-100, read from the files as they were published."""

from quadspike.data.cifar.load import (
    load_cifar10,
    load_cifar100,
    verify_cifar10,
    verify_cifar100,
)

__all__ = ["load_cifar10", "load_cifar100", "verify_cifar10", "verify_cifar100"]
