"""N-MNIST: records of 40 bits from a 34 x 34 corner of an ATIS camera.

Column and row of eight bits each, from the top left of the upright picture; one bit that is 1
for ON; 23 bits of time in microseconds, the high byte first. A row of 240 is no pixel but the
camera's word that its clock overflowed: all that follows is 2^13 us later.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from quadspike.data.events.cache import FrameCache
from quadspike.data.events.files import Source, listed, read_bytes
from quadspike.data.events.form import Events
from quadspike.data.events.frames import Framing
from quadspike.data.events.look import few_clips, verify_recordings
from quadspike.data.progress import Progress
from quadspike.data.split import Split
from quadspike.data.verified import Verified
from quadspike.errors import QuadspikeError, check_name

SENSOR = 34
BACKWARDS = ("error", "sort")
CLASSES = tuple("0123456789")
_RECORD = 5
_OVERFLOW_ROW, _OVERFLOW_US = 240, 1 << 13


def read_nmnist(path: str | Path, *, backwards: str = "error") -> Events:
    """The events of an N-MNIST file.

    Where time runs backwards, `backwards="error"` refuses and "sort" puts the events in order.
    """
    return parse_nmnist(read_bytes(path), str(path), backwards=backwards)


def parse_nmnist(data: bytes, name: str, *, backwards: str = "error") -> Events:
    """As `read_nmnist`, from bytes; `name` is what messages call them."""
    check_name("way with time running backwards", backwards, BACKWARDS)
    if len(data) % _RECORD:
        raise QuadspikeError(
            f"{name}: cut short: {len(data)} bytes are not whole records of {_RECORD}; the last "
            f"begins at byte {len(data) // _RECORD * _RECORD}"
        )
    records = np.frombuffer(data, np.uint8).reshape(-1, _RECORD)
    x, y = records[:, 0], records[:, 1]
    high, middle, low = (records[:, place].astype(np.int64) for place in (2, 3, 4))
    t = ((high & 0x7F) << 16) | (middle << 8) | low
    p = (high >> 7).astype(np.uint8)
    overflow = y == _OVERFLOW_ROW
    if overflow.any():
        t = t + np.cumsum(overflow) * _OVERFLOW_US
    where = np.flatnonzero(~overflow)
    t, x, y, p = t[where], x[where], y[where], p[where]
    if not len(t):
        raise QuadspikeError(f"{name}: no events in {len(data)} bytes")
    outside = (x >= SENSOR) | (y >= SENSOR)
    if outside.any():
        place = int(np.flatnonzero(outside)[0])
        raise QuadspikeError(
            f"{name}: the record at byte {where[place] * _RECORD} lies at column {x[place]}, row "
            f"{y[place]}; N-MNIST has 0..{SENSOR - 1}"
        )
    falls = np.flatnonzero(t[1:] < t[:-1]) + 1
    if len(falls) and backwards == "error":
        place = int(falls[0])
        raise QuadspikeError(
            f"{name}: time runs backwards at byte {where[place] * _RECORD}: {t[place - 1]} then "
            f'{t[place]} us; pass backwards="sort"'
        )
    if len(falls):
        order = np.argsort(t, kind="stable")
        t, x, y, p = t[order], x[order], y[order], p[order]
    return Events.of(t, x.astype(np.int16), y.astype(np.int16), p, width=SENSOR, height=SENSOR)


def load_nmnist(
    root: str | Path,
    steps: int,
    *,
    size: int | None = None,
    by: str = "count",
    values: str = "counts",
    resize: str = "bilinear",
    cache: str | Path | None = None,
    progress: Progress | None = None,
    workers: int | None = None,
) -> tuple[Split, Split]:
    """Training and test split from the official folders, `Train/0..9/*.bin` and `Test/...`.

    Frames are kept in `cache`, `root/frames` by default; `by` to `resize` are those of
    `Framing`. Events are put in the order of time.
    """
    framing = Framing(steps, by, values, size, resize)
    kept = Path(root, "frames") if cache is None else Path(cache)
    splits = []
    for part in ("Train", "Test"):
        sources, labels = _list(Path(root, part))
        frames = FrameCache(
            kept, f"nmnist-{part.lower()}", sources, _decode, framing, {"backwards": "sort"}
        ).load(progress, workers)
        name = f"nmnist/{part.lower()}"
        splits.append(Split(name, frames, torch.tensor(labels), CLASSES, framing.levels))
    return splits[0], splits[1]


def preview_nmnist(root: str | Path, count: int) -> Split:
    """Frames of a few training recordings spread over the classes; no cache."""
    recordings = list(zip(*_list(Path(root, "Train")), strict=True))
    return few_clips("nmnist/train", recordings, count, _decode, Framing(10), CLASSES)


def verify_nmnist(root: str | Path, progress: Progress | None = None) -> Verified:
    """Read every recording under `root`, both parts and every class there."""
    return verify_recordings(
        "nmnist",
        Path(root),
        lambda: [s for part in ("Train", "Test") for s in _list(Path(root, part))[0]],
        _decode,
        progress,
    )


def _decode(source: Source) -> Events:
    return parse_nmnist(source.read(), source.name, backwards="sort")


def _list(folder: Path) -> tuple[list[Source], list[int]]:
    sources: list[Source] = []
    labels: list[int] = []
    for label, digit in enumerate(CLASSES):
        found = [path for path in listed(folder / digit) if path.suffix == ".bin"]
        if not found:
            raise QuadspikeError(
                f"{folder / digit}: no .bin files; N-MNIST has the folders Train/0..9 and Test/0..9"
            )
        sources += map(Source, found)
        labels += [label] * len(found)
    return sources, labels
