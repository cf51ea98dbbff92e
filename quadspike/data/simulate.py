"""Whole data sets through the simulated event camera: as files, or as frames at once.

Whatever comes out says that it is simulated: the folder by a file `SIMULATED.json`, every
recording by a line of its header, a split by its name.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import warnings
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

import quadspike
from quadspike.atomic import lock, write_text
from quadspike.data.events.aedat import SENSOR, write_aedat
from quadspike.data.events.camera import CIFAR10_DVS_CAMERA, EventCamera
from quadspike.data.events.camera_keys import separate
from quadspike.data.events.files import SIMULATED, read_bytes
from quadspike.data.events.frames import EventBatch, Framing, clipping, to_bytes
from quadspike.data.progress import Progress
from quadspike.data.split import Split
from quadspike.errors import QuadspikeError, QuadspikeWarning, check_count

_WRITERS = 8


class _Recording(NamedTuple):
    """A file to be, and which sample of the split it shows."""

    path: Path
    sample: int


def simulate(
    split: Split,
    out: str | Path,
    camera: EventCamera = CIFAR10_DVS_CAMERA,
    seed: int = 0,
    *,
    per_class: int = 1000,
    batch: int | None = None,
    progress: Progress | None = None,
) -> int:
    """Record the first `per_class` images of each class; the number of recordings made.

    AEDAT 2.0 in the layout of CIFAR10-DVS: the images of a split "cifar10/train" become
    `out/<class>/cifar10_<class>_<i>.aedat`, by a camera lying on its side as there. They are
    computed on the split's device, `batch` at a time: 256, or 16 on a CPU. An interrupted run
    goes on where it stopped; the files depend neither on that, nor on device or batch. A folder
    that holds anything else is refused.
    """
    size = _batch_size(split, batch)
    if camera.sensor != SENSOR:
        raise QuadspikeError(
            f"AEDAT 2.0 files are of {SENSOR} x {SENSOR} pixels, the camera has {camera.sensor}; "
            "take simulate_frames for other sensors"
        )
    planned = _plan(split, Path(out), check_count("per_class", per_class))
    label = _label(split, camera, seed, per_class, planned)
    note = f"simulated by quadspike {quadspike.__version__}, seed {seed}, {split.name}"
    with _claimed(Path(out), label, planned), ThreadPoolExecutor(_WRITERS) as writers:
        missing = [recording for recording in planned if not recording.path.exists()]
        done = len(planned) - len(missing)
        writing: list[Future[None]] = []
        samples = torch.tensor([recording.sample for recording in missing], dtype=torch.int64)
        for begin, recorded in _record(split, samples, camera, seed, size):
            events = [one.to("cpu") for one in separate(recorded)]
            # The files of one batch are written while the next is computed.
            done = _finish(writing, done, len(planned), progress)
            writing = [
                writers.submit(
                    write_aedat, one, file.path, [f"{note}, sample {file.sample}"], "sideways"
                )
                for one, file in zip(events, missing[begin : begin + size], strict=True)
            ]
        _finish(writing, done, len(planned), progress)
    return len(missing)


def simulate_frames(
    split: Split,
    steps: int,
    camera: EventCamera = CIFAR10_DVS_CAMERA,
    seed: int = 0,
    *,
    by: str = "count",
    values: str = "counts",
    size: int | None = None,
    resize: str = "bilinear",
    batch: int | None = None,
    progress: Progress | None = None,
) -> Split:
    """The split as clips of frames `[N, T, 2, H, W]`, named "... (simulated)".

    The same frames as of the files that `simulate` writes; `by` to `resize` are those of
    `Framing`, whose `levels` says what one event is worth in the bytes.
    """
    framing = Framing(steps, by, values, size, resize)
    side = size or camera.sensor
    shape = (len(split), steps, 2, side, side)
    clips = torch.empty(shape, dtype=torch.uint8, device=split.inputs.device)
    samples = torch.arange(len(split))
    clipped = 0
    for begin, recorded in _record(split, samples, camera, seed, _batch_size(split, batch)):
        stored, over = to_bytes(framing(recorded), framing.levels)
        clips[begin : begin + len(stored)] = stored
        clipped += over
        if progress is not None:
            progress(begin + len(stored), len(split))
    if clipped:
        text = clipping(clipped, clips.numel(), 255 / framing.levels)
        warnings.warn(f"{split.name}: {text}", QuadspikeWarning, stacklevel=2)
    name = f"{split.name} (simulated)"
    return Split(name, clips, split.labels, split.classes, framing.levels)


def _batch_size(split: Split, batch: int | None) -> int:
    # A GPU wants much at once; a CPU what its cache holds.
    if batch is None:
        return 16 if split.inputs.device.type == "cpu" else 256
    return check_count("batch", batch)


def _record(
    split: Split, samples: Tensor, camera: EventCamera, seed: int, batch: int
) -> Iterator[tuple[int, EventBatch]]:
    """Where each batch of samples begins, and its recordings on the split's device."""
    chosen = samples.to(split.inputs.device)
    for begin in range(0, len(samples), batch):
        part = chosen[begin : begin + batch]
        yield begin, camera.record(split.inputs[part], part, seed)


def _finish(writing: list[Future[None]], done: int, total: int, progress: Progress | None) -> int:
    for future in writing:
        future.result()
        done += 1
        if progress is not None:
            progress(done, total)
    return done


def _plan(split: Split, folder: Path, per_class: int) -> list[_Recording]:
    """Every file of the finished folder, class by class."""
    family = split.name.split("/")[0]
    planned = []
    for label, name in enumerate(split.classes):
        if not all(re.fullmatch(r"\w[\w .-]*", part) for part in (family, name)):
            raise QuadspikeError(
                f"files cannot be named after the class {name!r} of {split.name!r}: letters, "
                "digits, blanks and _ . - are allowed; rename it"
            )
        samples = torch.nonzero(split.labels == label).flatten()[:per_class].tolist()
        if len(samples) < per_class:
            raise QuadspikeError(
                f"{split.name} has {len(samples)} images of {name}, fewer than {per_class}; "
                "lower per_class"
            )
        planned += [
            _Recording(folder / name / f"{family}_{name}_{number}.aedat", sample)
            for number, sample in enumerate(samples)
        ]
    return planned


def _label(
    split: Split, camera: EventCamera, seed: int, per_class: int, planned: list[_Recording]
) -> dict[str, Any]:
    """What decides the recordings, as it stands in the folder."""
    images = split.inputs.cpu()[[recording.sample for recording in planned]]
    return {
        "simulated": "computed by quadspike's event camera; no sensor recorded this",
        "quadspike": quadspike.__version__,
        "source": split.name,
        "classes": list(split.classes),
        "per_class": per_class,
        "seed": seed,
        "camera": {**asdict(camera), "radius": list(camera.radius)},
        "source_sha256": hashlib.sha256(images.numpy().tobytes()).hexdigest(),
    }


@contextmanager
def _claimed(folder: Path, label: dict[str, Any], planned: list[_Recording]) -> Iterator[None]:
    """The folder for this process alone, with nothing in it but these recordings."""
    path = folder / SIMULATED
    if not path.exists():
        # A label that a killed run left half written is written over, and so is a recording.
        kept = f".{SIMULATED}.partial"
        if folder.exists() and not (folder.is_dir() and {kept}.issuperset(os.listdir(folder))):
            raise QuadspikeError(
                f"{folder}: not empty, and no {SIMULATED} says that its recordings are simulated; "
                "name a new folder"
            )
        write_text(path, json.dumps(label, indent=2) + "\n")
    with path.open("rb") as file:
        # Where files cannot be locked, two processes would write the same bytes.
        taken = f"{folder}: another process is recording there; wait for it, or end it"
        lock(file.fileno(), taken)
        _check_same(path, label)
        files = {recording.path for recording in planned}
        for found in folder.glob("*/*.aedat"):
            if found not in files:
                raise QuadspikeError(
                    f"{found}: not one of the recordings that {path} tells of; move it elsewhere"
                )
        yield


def _check_same(path: Path, label: dict[str, Any]) -> None:
    try:
        found = json.loads(read_bytes(path))
    except ValueError as error:
        raise QuadspikeError(f"{path}: not valid JSON ({error}); name a new folder") from None
    if not isinstance(found, dict):
        raise QuadspikeError(f"{path}: not a JSON object; name a new folder")
    for key in dict.fromkeys([*label, *found]):
        if label.get(key) != found.get(key):
            raise QuadspikeError(
                f"{path}: the recordings there have another {key}: {found.get(key)!r} instead of "
                f"{label.get(key)!r}; name a new folder"
            )
