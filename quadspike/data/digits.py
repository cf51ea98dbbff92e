"""Handwritten digits inside the package: data to train on at once, without a download.

1,797 images of 8 x 8, written by 13 people: the test part of "Optical Recognition of
Handwritten Digits" by E. Alpaydin and C. Kaynak, UCI Machine Learning Repository, 1998
(https://doi.org/10.24432/C50P49), as scikit-learn ships it. CC BY 4.0; see DIGITS_LICENSE.md
beside this file. The split into training and test images is ours and fixed in the file: of each
digit a fifth tests. The same people write in both parts.
"""

from __future__ import annotations

import hashlib
import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from quadspike.data.events.camera import EventCamera
from quadspike.data.events.files import read_bytes
from quadspike.data.simulate import simulate_frames
from quadspike.data.split import Split
from quadspike.errors import QuadspikeError

CLASSES = tuple("0123456789")
DIGITS_CAMERA = EventCamera(
    sensor=16, screen=64, radius=(8.0, 10.0), response_ms=0.0, threshold=0.5, threshold_spread=0.05
)
"""A camera in proportion to 8 x 8 pixels: two of its own to one of theirs, a path as wide as one.

Ink is far from paper in brightness; the threshold keeps a pixel to some 30 events."""

_FILE = Path(__file__).with_name("digits.npz")
_SHA256 = "8d34f01169b93e398a54ba0a897791d4c3e7df076be5dfb7d8ac9d5fea51147b"


def load_digits() -> tuple[Split, Split]:
    """Training and test images, uint8 `[N, 1, 8, 8]` in 0..255.

    >>> train, test = load_digits()
    >>> len(train), len(test), train.inputs.shape[1:]
    (1438, 359, torch.Size([1, 8, 8]))
    """
    digits, tests = _load()
    return digits.parted(tests)


def load_event_digits(
    steps: int,
    seed: int = 0,
    camera: EventCamera = DIGITS_CAMERA,
    *,
    by: str = "time",
    values: str = "counts",
    device: torch.device | str = "cpu",
) -> tuple[Split, Split]:
    """The same digits before a simulated event camera: clips `[N, T, 2, H, W]`.

    `by` and `values` are those of `Framing`. Frames keep the sensor's pixels, so that one
    event is 1 in the bytes.
    """
    digits, tests = _load()
    clips = simulate_frames(digits.to(device), steps, camera, seed, by=by, values=values, batch=256)
    return replace(clips, name="digits (simulated events)").parted(tests.to(device))


def _load() -> tuple[Split, Tensor]:
    """All digits, and which of them test."""
    data = read_bytes(_FILE)
    if hashlib.sha256(data).hexdigest() != _SHA256:
        raise QuadspikeError(
            f"{_FILE}: not the file that belongs to this version; install quadspike anew"
        )
    with np.load(io.BytesIO(data)) as arrays:
        images, labels, tests = (torch.from_numpy(arrays[k]) for k in ("images", "labels", "test"))
    # Pixels count 0 to 16 dots of ink; white on black.
    inputs = ((images.int() * 255 + 8) // 16).to(torch.uint8)[:, None]
    return Split("digits", inputs, labels.long(), CLASSES), tests
