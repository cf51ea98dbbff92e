"""From the bytes of one CIFAR file to its images and labels, checked on the way."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quadspike.data.cifar.layouts import PIXELS, Labels, Layout, Part
from quadspike.data.cifar.pickles import read_pickle
from quadspike.errors import QuadspikeError

Bytes = NDArray[np.uint8]


def decode(layout: Layout, part: Part, where: str, raw: bytes) -> tuple[Bytes, Bytes]:
    """Images `[N, 3072]` and labels `[N, labels]` of a file found at `where`."""
    if layout.form == "binary":
        return _from_records(layout.labels, part, where, raw)
    # Before it is unpickled, so that only the published pickles ever are.
    _check_digest(part, where, raw)
    return _from_pickle(layout.labels, part, where, raw)


def _from_records(
    labels: tuple[Labels, ...], part: Part, where: str, raw: bytes
) -> tuple[Bytes, Bytes]:
    length = len(labels) + PIXELS
    if len(raw) != part.images * length:
        whole, rest = divmod(len(raw), length)
        breaks = f"; record {whole} breaks off at byte {whole * length:,}" if rest else ""
        raise QuadspikeError(
            f"{where}: {len(raw):,} bytes where {part.images:,} records of {length} make "
            f"{part.images * length:,}{breaks}; get the file again"
        )
    records = np.frombuffer(raw, np.uint8).reshape(part.images, length)
    for column, label in enumerate(labels):
        wrong = np.flatnonzero(records[:, column] >= label.classes)
        if len(wrong):
            record = int(wrong[0])
            raise QuadspikeError(
                f"{where}: the label at byte {record * length + column:,} (record {record}) is "
                f"{records[record, column]}, and must lie in 0..{label.classes - 1}; "
                "get the file again"
            )
    _check_digest(part, where, raw)
    return records[:, len(labels) :], records[:, : len(labels)]


def _from_pickle(
    labels: tuple[Labels, ...], part: Part, where: str, raw: bytes
) -> tuple[Bytes, Bytes]:
    content = read_pickle(raw, where)
    images = content.get("data")
    if not isinstance(images, np.ndarray) or images.shape != (part.images, PIXELS):
        shape = images.shape if isinstance(images, np.ndarray) else type(images).__name__
        raise QuadspikeError(
            f"{where}: 'data' must be {part.images} x {PIXELS} bytes, but is {shape}"
        )
    columns = [_column(content.get(label.key), label, part, where) for label in labels]
    return images, np.stack(columns, axis=1)


def _column(values: Any, label: Labels, part: Part, where: str) -> Bytes:
    if not isinstance(values, list) or len(values) != part.images:
        raise QuadspikeError(f"{where}: {label.key!r} must list {part.images} labels")
    for index, value in enumerate(values):
        if type(value) is not int or not 0 <= value < label.classes:
            raise QuadspikeError(
                f"{where}: {label.key!r} of image {index} is {value!r}, and must lie in "
                f"0..{label.classes - 1}"
            )
    return np.array(values, np.uint8)


def _check_digest(part: Part, where: str, raw: bytes) -> None:
    found = hashlib.new(part.algorithm, raw, usedforsecurity=False).hexdigest()
    if found != part.digest:
        name = {"sha1": "SHA-1", "md5": "MD5"}[part.algorithm]
        raise QuadspikeError(
            f"{where}: {len(raw):,} bytes with the {name} {found}, but the published file has "
            f"{part.digest}: some bytes are missing or were changed; get the file again"
        )
