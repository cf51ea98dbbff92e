"""Your own recordings: a folder of classes, each a folder of event files."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from quadspike.data.events.aedat import parse_aedat
from quadspike.data.events.cache import FrameCache
from quadspike.data.events.files import Source, listed, named
from quadspike.data.events.form import Events
from quadspike.data.events.frames import Framing
from quadspike.data.events.nmnist import parse_nmnist
from quadspike.data.listing import check_same_classes
from quadspike.data.progress import Progress
from quadspike.data.split import Split
from quadspike.errors import QuadspikeError
from quadspike.randomness import permutation

SPLITS = {
    "folders": "root/train/<class> and root/test/<class>",
    "last": "the last recordings of each class test, by the numbers in their names",
    "random": "recordings of each class drawn by the seed test",
}
FORMATS = (".aedat", ".bin")


def load_event_folder(
    root: str | Path,
    steps: int,
    *,
    split: str | None = None,
    test_share: float = 0.1,
    seed: int = 0,
    size: int | None = None,
    by: str = "count",
    values: str = "counts",
    resize: str = "bilinear",
    backwards: str = "error",
    cache: str | Path | None = None,
    progress: Progress | None = None,
    workers: int | None = None,
) -> tuple[Split, Split]:
    """Training and test split of `root/<class>/*.aedat` (DVS128) or `*.bin` (N-MNIST's records).

    `split` must be named: one of `SPLITS`. By "last" and "random" `test_share` of each class
    tests, rounded, at least one recording. Frames are kept in `cache`, by default in the folder
    `<root>.frames` beside it; `by` to `resize` are those of `Framing`, `backwards` is that of
    `read_aedat` and `read_nmnist`.
    """
    base = Path(root).resolve()
    if split not in SPLITS:
        meanings = "; ".join(f"{name!r}: {meaning}" for name, meaning in SPLITS.items())
        raise QuadspikeError(f"name a split for {base}: got split={split!r}, allowed {meanings}")
    if not 0 < test_share < 1:
        raise QuadspikeError(f"test_share must lie between 0 and 1, got {test_share!r}")
    if split == "folders":
        parts = [_classes(base / "train"), _classes(base / "test")]
        check_same_classes(base / "train", parts[0], base / "test", parts[1])
    else:
        parts = [_classes(base)]
    names = tuple(parts[0])
    labelled = [
        (source, names.index(name), place)
        for place, part in enumerate(parts)
        for name in names
        for source in part[name]
    ]
    labels = torch.tensor([label for _, label, _ in labelled])
    if split == "folders":
        test = torch.tensor([place == 1 for _, _, place in labelled])
    else:
        test = _drawn(labels, names, split, test_share, seed)
    framing = Framing(steps, by, values, size, resize)
    frames = FrameCache(
        Path(f"{base}.frames") if cache is None else Path(cache),
        base.name,
        [source for source, _, _ in labelled],
        partial(_decode, backwards=backwards),
        framing,
        {"backwards": backwards},
    ).load(progress, workers)
    name = f"{named(base.name, base)}/{split}"
    return Split(name, frames, labels, names, framing.levels).parted(test)


def _drawn(
    labels: Tensor, names: tuple[str, ...], split: str, test_share: float, seed: int
) -> Tensor:
    """Which recordings test."""
    test = torch.zeros(len(labels), dtype=torch.bool)
    for label, name in enumerate(names):
        places = torch.nonzero(labels == label).flatten()
        count = max(1, round(test_share * len(places)))
        if count >= len(places):
            raise QuadspikeError(
                f"class {name} has {len(places)} recordings, too few to train and test on"
            )
        if split == "random":
            places = places[permutation(len(places), seed, 0, f"event folder {name}")]
        test[places[-count:]] = True
    return test


def _decode(source: Source, backwards: str) -> Events:
    if source.suffix == ".bin":
        return parse_nmnist(source.read(), source.name, backwards=backwards)
    return parse_aedat(source.read(), source.name, backwards=backwards)


def _classes(folder: Path) -> dict[str, list[Source]]:
    """The recordings of each class, in the order of names and of the numbers in them.

    Names that begin with a dot are passed over.
    """
    if not folder.is_dir():
        raise QuadspikeError(f"{folder}: no such folder")
    classes: dict[str, list[Source]] = {}
    for child in listed(folder):
        if not child.is_dir():
            continue
        found = [Source(path) for path in listed(child) if path.suffix.lower() in FORMATS]
        if not found:
            raise QuadspikeError(f"{child}: no event files ({' or '.join(FORMATS)})")
        classes[child.name] = found
    if not classes:
        raise QuadspikeError(f"{folder}: no class folders; expected {folder}/<class>/*.aedat")
    return classes
