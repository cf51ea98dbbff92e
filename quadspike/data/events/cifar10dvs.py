"""CIFAR10-DVS: ten thousand recordings of CIFAR-10 images moving on a screen.

There is no official split, and the split alone moves accuracy by several points, so it has to
be named:

- "tebn": numbers 0 to 99 of each class test, 100 to 999 train;
- "last100": numbers 0 to 899 train, 900 to 999 test;
- "random": a tenth of each class, drawn by `seed`, tests.

The camera lay on its side (`aedat.upright`). That is read off three public readers, which all
put the top of the picture where the column bits are highest; they differ in left and right,
where we keep the turn that a camera can make and not its mirror image.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import torch

from quadspike.data.cifar.names import CIFAR10_NAMES
from quadspike.data.events.aedat import parse_aedat
from quadspike.data.events.cache import FrameCache
from quadspike.data.events.files import Source, archive_members, listed, named
from quadspike.data.events.form import Events
from quadspike.data.events.frames import Framing
from quadspike.data.events.look import few_clips, verify_recordings
from quadspike.data.progress import Progress
from quadspike.data.split import Split
from quadspike.data.verified import Verified
from quadspike.errors import QuadspikeError
from quadspike.randomness import permutation

CLASSES = CIFAR10_NAMES
PER_CLASS = 1000
SPLITS = {
    "tebn": "numbers 0-99 of each class test, 100-999 train",
    "last100": "numbers 0-899 of each class train, 900-999 test",
    "random": "a tenth of each class tests, drawn by the seed",
}
_TESTED = 100


def load_cifar10dvs(
    root: str | Path,
    steps: int = 10,
    size: int | None = 48,
    split: str | None = None,
    *,
    seed: int = 0,
    by: str = "count",
    values: str = "counts",
    resize: str = "bilinear",
    camera: str = "sideways",
    allow_partial: bool = False,
    cache: str | Path | None = None,
    progress: Progress | None = None,
    workers: int | None = None,
) -> tuple[Split, Split]:
    """Training and test split from the official folders, or the official archives unopened.

    `root` holds for each class a folder such as `airplane` or an archive `airplane.zip`, of
    `cifar10_airplane_0.aedat` to `..._999.aedat`. `split` must be named. Frames are kept in
    `cache`, `root/frames` by default; `by` to `resize` are those of `Framing`, `camera` is
    that of `read_aedat`. Events are put in the order of time. `allow_partial` takes whatever
    recordings are there.
    """
    tested = _tested(split, seed)
    numbered = _list(Path(root), allow_partial)
    name = f"{named('cifar10-dvs', root)}/{split}"
    tests = [number in tested[kind] for kind, found in numbered.items() for number in found]
    for part, lacking in {"train": all(tests), "test": not any(tests)}.items():
        if lacking:
            raise QuadspikeError(f"{name}/{part}: none of the recordings there belong to it")
    framing = Framing(steps, by, values, size, resize)
    frames = FrameCache(
        Path(root, "frames") if cache is None else Path(cache),
        "cifar10-dvs",
        [source for found in numbered.values() for source in found.values()],
        partial(_decode, camera=camera),
        framing,
        {"backwards": "sort", "camera": camera},
    ).load(progress, workers)
    labels = [CLASSES.index(kind) for kind, found in numbered.items() for _ in found]
    whole = Split(name, frames, torch.tensor(labels), CLASSES, framing.levels)
    return whole.parted(torch.tensor(tests))


def _tested(split: str | None, seed: int) -> dict[str, frozenset[int]]:
    """Which numbers of each class test: a function of the split and the seed alone."""
    if split == "tebn":
        return dict.fromkeys(CLASSES, frozenset(range(_TESTED)))
    if split == "last100":
        return dict.fromkeys(CLASSES, frozenset(range(PER_CLASS - _TESTED, PER_CLASS)))
    if split == "random":
        return {
            name: frozenset(
                permutation(PER_CLASS, seed, 0, f"cifar10-dvs {name}")[:_TESTED].tolist()
            )
            for name in CLASSES
        }
    meanings = "; ".join(f"{name!r}: {meaning}" for name, meaning in SPLITS.items())
    raise QuadspikeError(
        f"CIFAR10-DVS has no official split, so name one: got split={split!r}, allowed {meanings}"
    )


def preview_cifar10dvs(root: str | Path, count: int) -> Split:
    """Frames of a few recordings spread over the classes, from whatever is there; no cache."""
    recordings = [
        (source, CLASSES.index(name))
        for name, found in _list(Path(root), allow_partial=True).items()
        for source in found.values()
    ]
    name = f"{named('cifar10-dvs', root)}, {len(recordings):,} recordings"
    decode = partial(_decode, camera="sideways")
    return few_clips(name, recordings, count, decode, Framing(10, size=48), CLASSES)


def verify_cifar10dvs(root: str | Path, progress: Progress | None = None) -> Verified:
    """Read every recording under `root`, none missing."""
    return verify_recordings(
        "cifar10-dvs",
        Path(root),
        lambda: [s for found in _list(Path(root), False).values() for s in found.values()],
        partial(_decode, camera="sideways"),
        progress,
    )


def _decode(source: Source, camera: str) -> Events:
    return parse_aedat(source.read(), source.name, backwards="sort", camera=camera)


def _list(root: Path, allow_partial: bool) -> dict[str, dict[int, Source]]:
    """The recordings of each class by number, in order."""
    if not root.is_dir():
        raise QuadspikeError(f"{root}: no such folder; it should hold the classes of CIFAR10-DVS")
    numbered = {name: _numbered(root, name) for name in CLASSES}
    missing = [name for name, found in numbered.items() if not found]
    if len(missing) == len(CLASSES) or (missing and not allow_partial):
        raise QuadspikeError(
            f"{root}: no recordings of {', '.join(missing)}; for each class there should be a "
            f"folder or a zip archive, such as {CLASSES[0]} or {CLASSES[0]}.zip"
            + ("" if len(missing) == len(CLASSES) else "; or pass allow_partial=True in Python")
        )
    for name, found in numbered.items():
        gaps = [number for number in range(PER_CLASS) if number not in found]
        if gaps and not allow_partial:
            raise QuadspikeError(
                f"{root}: {name} lacks {len(gaps)} of {PER_CLASS} recordings, the first "
                f"cifar10_{name}_{gaps[0]}.aedat; fetch them, or pass "
                "allow_partial=True in Python"
            )
    return numbered


def _numbered(root: Path, name: str) -> dict[int, Source]:
    folder, archive = root / name, root / f"{name}.zip"
    if folder.is_dir():
        sources = [Source(path) for path in listed(folder)]
    elif archive.is_file():
        sources = [Source(archive, member) for member in archive_members(archive)]
    else:
        return {}
    numbered: dict[int, Source] = {}
    for source in sources:
        # Archives packed on a Mac carry shadows of their files, named "._...".
        if source.suffix != ".aedat" or source.stem.startswith("._"):
            continue
        match = re.fullmatch(rf"cifar10_{name}_(0|[1-9][0-9]{{0,2}})", source.stem)
        if match is None:
            raise QuadspikeError(
                f"{source.name}: not a recording of CIFAR10-DVS; those of this class are named "
                f"cifar10_{name}_0.aedat to cifar10_{name}_{PER_CLASS - 1}.aedat"
            )
        number = int(match[1])
        if number in numbered:
            raise QuadspikeError(f"{source.name}: the same number as {numbered[number].name}")
        numbered[number] = source
    return dict(sorted(numbered.items()))
