"""A user's own images: folders of them, one a class, held in memory.

Either the folders say what is held out,

    root/train/<class>/*    and    root/test/<class>/*   (or val, or any name given)

or a stated share of every class of `root/<class>/*` (or `root/train/<class>/*`) is.
"""

from __future__ import annotations

from pathlib import Path

import torch
from PIL import Image
from torch import Tensor

from quadspike.data.crops import squash
from quadspike.data.decode import BrokenImageError, decode
from quadspike.data.listing import Listing, check_same_classes, class_folders, list_images
from quadspike.data.split import Split
from quadspike.errors import QuadspikeError, check_count
from quadspike.randomness import per_sample, purpose

LAYOUT = "train/<class>/* and test/<class>/*, or <class>/* and a share to hold out"
_NAMED = 10  # broken files that an error names, before it only counts them


def load_folder(
    root: Path | str,
    size: int,
    channels: int = 3,
    *,
    held_out: float | str | None = None,
    seed: int = 0,
) -> tuple[Split, Split]:
    """The training images and those held out, uint8 `[N, channels, size, size]`.

    Any format Pillow reads, resized to the square whatever the aspect (bilinear with
    antialiasing); `channels` is 3 for RGB or 1 for luma. `held_out` is the folder beside
    `train`, found by itself where it is `test` or `val`, or the share of every class (at
    least one image) that is held out by a draw of the seed and the file's name, so that a
    file added or removed moves hardly any other.
    """
    root = Path(root)
    check_count("size", size)
    if channels not in (1, 3):
        raise QuadspikeError(f"channels must be 3 (RGB) or 1 (luma), got {channels!r}")
    if isinstance(held_out, int | float):
        listing = _listing(root / "train" if _has_folders(root / "train") else root)
        apart = _draw_apart(listing, held_out, seed)
        images = _decode_all(listing, size, channels)
        parts = [
            (f"{listing.folder} ({what})", images[where], listing.labels[where])
            for what, where in (("training", ~apart), ("held out", apart))
        ]
        classes = listing.classes
    else:
        train = _listing(root / "train")
        test = _listing(root / (held_out or _other_folder(root)))
        check_same_classes(train.folder, train.classes, test.folder, test.classes)
        parts = [
            (str(part.folder), _decode_all(part, size, channels), part.labels)
            for part in (train, test)
        ]
        classes = train.classes
    first, second = (Split(name, inputs, labels, classes) for name, inputs, labels in parts)
    return first, second


def _listing(folder: Path) -> Listing:
    suffixes = {end for end, kind in Image.registered_extensions().items() if kind in Image.OPEN}
    return list_images(folder, class_folders(folder, LAYOUT), suffixes, LAYOUT)


def _has_folders(folder: Path) -> bool:
    """Whether it is a split; a class may be called `train` too, and holds images."""
    return folder.is_dir() and any(entry.is_dir() for entry in folder.iterdir())


def _other_folder(root: Path) -> str:
    found = [name for name in ("test", "val") if _has_folders(root / name)]
    if len(found) == 1:
        return found[0]
    if found:
        raise QuadspikeError(f"{root}: has both test and val; name one: held_out='test'")
    raise QuadspikeError(
        f"{root}: has no folder test or val beside train; name it (held_out='name') or state "
        "the share of every class to hold out (held_out=0.2)"
    )


def _draw_apart(listing: Listing, share: float, seed: int) -> Tensor:
    """Which images are held out, a mask; the share of every class, but neither none nor all."""
    if not 0 < share < 1:
        raise QuadspikeError(f"the share held out must lie between 0 and 1, got {share}")
    files = (listing.file(index) for index in range(len(listing)))
    names = torch.tensor([purpose(ascii(f"{file.parent.name}/{file.name}")) for file in files])
    draws = per_sample(1, names, seed, 0, "held out")[:, 0]
    apart = torch.zeros(len(listing), dtype=torch.bool)
    for label, name in enumerate(listing.classes):
        members = torch.nonzero(listing.labels == label)[:, 0]
        if len(members) < 2:
            raise QuadspikeError(
                f"{listing.folder / name}: one image cannot be shared between training and test; "
                "add more"
            )
        count = min(max(round(share * len(members)), 1), len(members) - 1)
        apart[members[torch.argsort(draws[members], stable=True)[:count]]] = True
    return apart


def _decode_all(listing: Listing, size: int, channels: int) -> Tensor:
    images = torch.empty(len(listing), channels, size, size, dtype=torch.uint8)
    broken = []
    for index in range(len(listing)):
        try:
            images[index] = squash(decode(listing.file(index), channels), size)
        except BrokenImageError as error:
            broken.append(str(error))
    if broken:
        more = [f"and {len(broken) - _NAMED} more"] if len(broken) > _NAMED else []
        raise QuadspikeError(
            "\n  ".join(["broken images, to repair or remove:", *broken[:_NAMED], *more])
        )
    return images
