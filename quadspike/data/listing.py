"""The images of a folder sorted into class folders, listed and checked before any is decoded."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from quadspike.errors import QuadspikeError


@dataclass(frozen=True)
class Listing:
    """Files in the order of (class, name), both sorted by their bytes.

    `names` is one array of bytes and not a list: worker processes that share a million Python
    strings would copy them all, for every look at one counts its references anew.
    """

    folder: Path
    classes: tuple[str, ...]
    names: NDArray[np.bytes_]
    labels: Tensor

    def __len__(self) -> int:
        return len(self.names)

    def file(self, index: int) -> Path:
        """Where image `index` lies."""
        name = os.fsdecode(self.names[index].item())
        return self.folder / self.classes[int(self.labels[index])] / name


def class_folders(folder: Path, layout: str) -> tuple[str, ...]:
    """The names of the folders in `folder`, sorted; `layout` tells the reader what belongs there.

    Names that begin with a dot are passed over, here and among the images.
    """
    entries = _entries(folder, layout)
    loose = [entry.name for entry in entries if not entry.is_dir()]
    if loose:
        raise QuadspikeError(
            f"{folder}: {loose[0]!r} ({len(loose)} such) lies beside the class folders; "
            f"expected {layout}"
        )
    if not entries:
        raise QuadspikeError(f"{folder}: no class folders in it; expected {layout}")
    return tuple(entry.name for entry in entries)


def list_images(
    folder: Path, classes: tuple[str, ...], suffixes: Collection[str], layout: str
) -> Listing:
    """The images of these class folders; anything else in them, or nothing, is an error."""
    names: list[bytes] = []
    counts = []
    for place in (folder / name for name in classes):
        entries = _entries(place, layout)
        for entry in entries:
            _check_image(entry, suffixes, layout)
        if not entries:
            raise QuadspikeError(
                f"{place}: the class has no images; put some there or remove the folder"
            )
        names.extend(os.fsencode(entry.name) for entry in entries)
        counts.append(len(entries))
    labels = torch.arange(len(classes)).repeat_interleave(torch.tensor(counts))
    return Listing(folder, classes, np.array(names, dtype=np.bytes_), labels)


def check_same_classes(
    one: Path, ours: Collection[str], other: Path, theirs: Collection[str]
) -> None:
    """Refuse two folders whose classes differ."""
    odd = sorted(set(ours) ^ set(theirs))
    if odd:
        raise QuadspikeError(
            f"{one} and {other} must hold the same class folders; only "
            f"{one if odd[0] in ours else other} has {odd[0]!r} ({len(odd)} such)"
        )


def _entries(folder: Path, layout: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            seen = [entry for entry in entries if not entry.name.startswith(".")]
    except OSError as error:
        raise QuadspikeError(
            f"{folder}: cannot be listed: {error.strerror}; expected {layout}"
        ) from error
    return sorted(seen, key=lambda entry: os.fsencode(entry.name))


def _check_image(entry: os.DirEntry[str], suffixes: Collection[str], layout: str) -> None:
    if entry.is_dir():
        raise QuadspikeError(f"{entry.path}: a folder where an image should be; expected {layout}")
    if os.path.splitext(entry.name)[1].lower() not in suffixes:
        raise QuadspikeError(
            f"{entry.path}: not named as an image ({' '.join(sorted(suffixes))}); remove it"
        )
