"""Every data set by name: what it is, where it lies, how to check it and what to look at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from quadspike.data.augment import Pipeline
from quadspike.data.cifar import load_cifar10, load_cifar100, verify_cifar10, verify_cifar100
from quadspike.data.digits import load_digits, load_event_digits
from quadspike.data.events.cifar10dvs import preview_cifar10dvs, verify_cifar10dvs
from quadspike.data.events.nmnist import preview_nmnist, verify_nmnist
from quadspike.data.imagenet import ImageNet, verify_imagenet
from quadspike.data.progress import Progress
from quadspike.data.root import data_root
from quadspike.data.split import Split
from quadspike.data.transforms import training_transform
from quadspike.data.verified import Verified
from quadspike.errors import QuadspikeError, check_name
from quadspike.randomness import permutation

Preview = tuple[Split, Pipeline]
"""Some training samples, and the augmentation that training gives them."""


@dataclass(frozen=True)
class Entry:
    """One data set."""

    what: str
    place: str
    """What to put where, under the data root; empty for what comes with the package."""
    verify: Callable[[Path, Progress | None], Verified]
    preview: Callable[[Path, int], Preview]


def _verify_digits(root: Path, progress: Progress | None) -> Verified:
    try:
        total = sum(map(len, load_digits()))
    except QuadspikeError as error:
        return Verified("digits", "a damaged file", str(error))
    return Verified("digits", f"{total:,} images inside the package")


def _shown(name: str, train: Split) -> Preview:
    return train, training_transform(name, train)


def _imagenet(root: Path, count: int) -> Preview:
    files = ImageNet(root / "imagenet", "train")
    chosen = permutation(len(files), 0, 0, "contact sheet")[:count].sort().values
    photos = torch.stack([files.load(int(index), [0.5] * files.draws) for index in chosen])
    return Split(files.name, photos, files.labels[chosen], files.classes), files.pipeline


CATALOG: dict[str, Entry] = {
    "digits": Entry(
        "1,797 handwritten digits of 8 x 8 pixels, inside the package",
        "",
        _verify_digits,
        lambda root, count: _shown("digits", load_digits()[0]),
    ),
    "digits-events": Entry(
        "the same digits before a simulated event camera",
        "",
        _verify_digits,
        lambda root, count: _shown("digits-events", load_event_digits(steps=8)[0]),
    ),
    "cifar10": Entry(
        "60,000 images of 32 x 32 pixels in 10 classes",
        "cifar-10-binary.tar.gz or cifar-10-python.tar.gz, or unpacked",
        lambda root, progress: verify_cifar10(root),
        lambda root, count: _shown("cifar10", load_cifar10(root)[0]),
    ),
    "cifar100": Entry(
        "60,000 images of 32 x 32 pixels in 100 classes",
        "cifar-100-binary.tar.gz or cifar-100-python.tar.gz, or unpacked",
        lambda root, progress: verify_cifar100(root),
        lambda root, count: _shown("cifar100", load_cifar100(root)[0]),
    ),
    "imagenet": Entry(
        "1.28 million photographs in 1,000 classes (ILSVRC 2012)",
        "imagenet/train/<synset>/*.JPEG and imagenet/val/<synset>/*.JPEG",
        lambda root, progress: verify_imagenet(root / "imagenet", progress),
        _imagenet,
    ),
    "cifar10-dvs": Entry(
        "10,000 event recordings of CIFAR-10 images on a screen, 128 x 128",
        "cifar10-dvs/<class>/*.aedat or cifar10-dvs/<class>.zip",
        lambda root, progress: verify_cifar10dvs(root / "cifar10-dvs", progress),
        lambda root, count: _shown("cifar10-dvs", preview_cifar10dvs(root / "cifar10-dvs", count)),
    ),
    "nmnist": Entry(
        "70,000 event recordings of MNIST digits, 34 x 34",
        "nmnist/Train/<digit>/*.bin and nmnist/Test/<digit>/*.bin",
        lambda root, progress: verify_nmnist(root / "nmnist", progress),
        lambda root, count: _shown("nmnist", preview_nmnist(root / "nmnist", count)),
    ),
}


def verify(name: str, root: Path | str | None = None, progress: Progress | None = None) -> Verified:
    """Read and check all of a data set."""
    return CATALOG[check_name("data set", name, CATALOG)].verify(data_root(root), progress)


def preview(name: str, root: Path | str | None = None, count: int = 8) -> Preview:
    """Training samples of a data set to look at."""
    return CATALOG[check_name("data set", name, CATALOG)].preview(data_root(root), count)
