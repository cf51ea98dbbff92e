"""The pipelines of the CIFAR lineage: crop, flip, AutoAugment, cutout, normalisation.

The constants are the customary ones. The means are those of the training images; CIFAR-10's
std is not (that would be 0.2470, 0.2435, 0.2616, over all pixels), but the mean over images of
each image's own std, and what the methods compared with here use.
"""

from __future__ import annotations

from quadspike.data.augment.autoaugment import AutoAugment
from quadspike.data.augment.basic import Cutout, Normalize, Pipeline, RandomCrop, RandomFlip
from quadspike.data.loader import Transform
from quadspike.errors import check_name

CIFAR10_MEAN, CIFAR10_STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
CIFAR100_MEAN, CIFAR100_STD = (0.5071, 0.4867, 0.4408), (0.2675, 0.2565, 0.2761)

_CONSTANTS = {
    "cifar10": (CIFAR10_MEAN, CIFAR10_STD),
    "cifar100": (CIFAR100_MEAN, CIFAR100_STD),
}


def cifar_train(dataset: str, *, autoaugment: bool | None = None, cutout: int = 16) -> Pipeline:
    """For training images; AutoAugment by default as in the paper, on CIFAR-100 alone.

    `cutout=0` cuts nothing out.

    >>> [type(step).__name__ for step in cifar_train("cifar10").steps]
    ['RandomCrop', 'RandomFlip', 'Cutout', 'Normalize']
    """
    mean, std = _CONSTANTS[check_name("dataset", dataset, _CONSTANTS)]
    steps: list[Transform] = [RandomCrop(padding=4), RandomFlip()]
    if autoaugment or (autoaugment is None and dataset == "cifar100"):
        steps.append(AutoAugment("cifar10"))
    if cutout:
        steps.append(Cutout(cutout))
    return Pipeline((*steps, Normalize(mean, std)))


def cifar_test(dataset: str) -> Pipeline:
    """For images to be classified: the normalisation alone."""
    mean, std = _CONSTANTS[check_name("dataset", dataset, _CONSTANTS)]
    return Pipeline((Normalize(mean, std),))
