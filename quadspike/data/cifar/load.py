"""CIFAR-10 and CIFAR-100 as splits in memory, every file checked against what was published."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from quadspike.data.cifar.layouts import CIFAR10, CIFAR100, PIXELS, Layout, Part
from quadspike.data.cifar.names import CIFAR10_NAMES, CIFAR100_COARSE_NAMES, CIFAR100_NAMES
from quadspike.data.cifar.places import Place, begun, find
from quadspike.data.cifar.records import Bytes, decode
from quadspike.data.download import fetch, md5_of
from quadspike.data.progress import Progress
from quadspike.data.root import data_root
from quadspike.data.split import Split
from quadspike.data.verified import Verified
from quadspike.errors import QuadspikeError, check_name

Images = tuple[Bytes, Bytes]
"""Images `[N, 3072]` and labels `[N, labels]`."""


def load_cifar10(
    root: Path | str | None = None, download: bool = False, *, progress: Progress | None = None
) -> tuple[Split, Split]:
    """The training and the test images of CIFAR-10, uint8 `[N, 3, 32, 32]`.

    Found under `root` (see `data_root`) as an official archive or unpacked, binary or python;
    where there is nothing, `download` fetches the binary archive.
    """
    place = _locate(CIFAR10, data_root(root), download, progress)
    return _splits("cifar10", place, 0, CIFAR10_NAMES)


def load_cifar100(
    root: Path | str | None = None,
    download: bool = False,
    *,
    labels: str = "fine",
    progress: Progress | None = None,
) -> tuple[Split, Split]:
    """The training and the test images of CIFAR-100 with its 100 fine or its 20 coarse labels."""
    names = {"coarse": CIFAR100_COARSE_NAMES, "fine": CIFAR100_NAMES}
    classes = names[check_name("kind of labels", labels, names)]
    place = _locate(CIFAR100, data_root(root), download, progress)
    return _splits("cifar100", place, list(names).index(labels), classes)


def verify_cifar10(root: Path | str | None = None) -> Verified:
    """Read and check every file of CIFAR-10 under `root`."""
    return verify("cifar10", CIFAR10, data_root(root))


def verify_cifar100(root: Path | str | None = None) -> Verified:
    """Read and check every file of CIFAR-100 under `root`."""
    return verify("cifar100", CIFAR100, data_root(root))


def verify(name: str, layouts: tuple[Layout, ...], root: Path) -> Verified:
    """Read and check every file of the first of the layouts found under `root`."""
    some = begun(layouts, root)
    found = f"some of the files in {some[0].path}" if some else "nothing"
    try:
        place = find(layouts, root)
        found = f"the {place.layout.form} files in {place.path}"
        read(place)
    except QuadspikeError as error:
        return Verified(name, found, str(error))
    if place.archived:
        official = md5_of(place.path) == place.layout.md5
        found += ", the published archive" if official else ", a repacked archive"
    return Verified(name, found)


def read(place: Place) -> tuple[Images, Images]:
    """The training and the test images at a place, checked."""
    layout = place.layout
    train, test = _Sink(layout, layout.train), _Sink(layout, layout.test)
    for part, where, raw in place.read():
        (train if part in layout.train else test).put(part, where, raw)
    return train.whole(f"{place.path}, training"), test.whole(f"{place.path}, test")


class _Sink:
    """One split's arrays, filled file by file in whatever order they come."""

    def __init__(self, layout: Layout, parts: tuple[Part, ...]) -> None:
        self.layout, self.parts = layout, parts
        self.count = sum(part.images for part in parts)
        self.images = np.empty((self.count, PIXELS), np.uint8)
        self.labels = np.empty((self.count, len(layout.labels)), np.uint8)

    def put(self, part: Part, where: str, raw: bytes) -> None:
        first = sum(each.images for each in self.parts[: self.parts.index(part)])
        rows = slice(first, first + part.images)
        self.images[rows], self.labels[rows] = decode(self.layout, part, where, raw)

    def whole(self, where: str) -> Images:
        """The arrays, if every class is as frequent as every other."""
        for column, label in enumerate(self.layout.labels):
            counts = np.bincount(self.labels[:, column], minlength=label.classes)
            wrong = np.flatnonzero(counts != self.count // label.classes)
            if len(wrong):
                raise QuadspikeError(
                    f"{where}: {label.key!r} {wrong[0]} occurs {counts[wrong[0]]:,} times, and "
                    f"must {self.count // label.classes:,} times; get the files again"
                )
        return self.images, self.labels


def _locate(
    layouts: tuple[Layout, ...], root: Path, download: bool, progress: Progress | None
) -> Place:
    try:
        return find(layouts, root)
    except QuadspikeError:
        if not download:
            raise
    layout = layouts[0]
    archive = root / layout.archive
    fetch(layout.url, archive, size=layout.size, md5=layout.md5, progress=progress)
    return Place(layout, archive)


def _splits(name: str, place: Place, column: int, classes: tuple[str, ...]) -> tuple[Split, Split]:
    train, test = (
        Split(
            f"{name}/{part}",
            torch.from_numpy(images).view(-1, 3, 32, 32),
            torch.from_numpy(labels[:, column]).long(),
            classes,
        )
        for part, (images, labels) in zip(("train", "test"), read(place), strict=True)
    )
    return train, test
