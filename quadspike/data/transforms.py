"""How the samples of a data set are shown to a network: varied in training, plain in a test."""

from __future__ import annotations

import torch

from quadspike.data.augment import Normalize, Pipeline, cifar_test, cifar_train
from quadspike.data.augment.shift import RandomShift
from quadspike.data.events.transforms import TimeFirst, dvs_train
from quadspike.data.loader import Transform
from quadspike.data.split import Split

_CIFAR = ("cifar10", "cifar100")


def training_transform(
    dataset: str,
    train: Split,
    *,
    autoaugment: bool | None = None,
    cutout: int = 16,
    event_transform: str = "paper",
) -> Pipeline:
    """What training does to the samples of a data set; `train` are its training samples.

    `autoaugment` and `cutout` are for CIFAR (see `cifar_train`), `event_transform` for
    CIFAR10-DVS (see `dvs_train`). What has no augmentation here is shown as in a test.
    """
    if dataset in _CIFAR:
        return cifar_train(dataset, autoaugment=autoaugment, cutout=cutout)
    if dataset == "cifar10-dvs":
        return dvs_train(event_transform, levels=train.levels)
    plain = standard_transform(train)
    # On 8 x 8 pixels a crop of whole ones cuts strokes off, and a mirrored digit is none.
    return Pipeline((RandomShift(0.5), plain) if dataset == "digits" else (plain,))


def plain_transform(dataset: str, train: Split) -> Transform:
    """What is done to the samples that a network is judged on."""
    return cifar_test(dataset) if dataset in _CIFAR else standard_transform(train)


def standard_transform(train: Split) -> Transform:
    """Images normalised by their own mean and std per channel, clips as events, time first.

    >>> from quadspike.data.loader import Draw
    >>> images = torch.tensor([0, 255], dtype=torch.uint8).view(2, 1, 1, 1)
    >>> split = Split("toy", images, torch.tensor([0, 1]), ("dark", "light"))
    >>> standard_transform(split)(images, Draw(0, 0, torch.arange(2))).flatten().tolist()
    [-1.0, 1.0]
    """
    if train.inputs.ndim == 5:
        return TimeFirst(train.levels)
    values = torch.arange(256, dtype=torch.float64) / 255
    means, stds = [], []
    for channel in train.inputs.unbind(1):
        # From the counts of the 256 bytes: exact, and no float copy of the data.
        share = torch.bincount(channel.flatten().cpu(), minlength=256).double() / channel.numel()
        mean = float(share @ values)
        means.append(mean)
        stds.append(float(share @ (values - mean).square()) ** 0.5 or 1.0)
    return Normalize(tuple(means), tuple(stds))
