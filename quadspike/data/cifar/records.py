"""From the bytes of one published CIFAR file to its images and labels."""

from __future__ import annotations

import hashlib
import io
import pickle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quadspike.data.cifar.layouts import PIXELS, Layout
from quadspike.errors import QuadspikeError

Bytes = NDArray[np.uint8]


def decode(layout: Layout, name: str, where: str, raw: bytes) -> tuple[Bytes, Bytes]:
    """Images `[N, 3072]` and labels `[N, labels]` of the file `name`, found at `where`.

    The checksum comes first: a pickle is a program, and only those published are ever run.
    """
    algorithm = "sha1" if layout.form == "binary" else "md5"
    found = hashlib.new(algorithm, raw, usedforsecurity=False).hexdigest()
    if found != layout.files[name]:
        raise QuadspikeError(
            f"{where}: {len(raw):,} bytes with the {algorithm.upper()} {found}, but the published "
            f"file has {layout.files[name]}: some bytes are missing or were changed; get the file "
            "again"
        )
    count = len(layout.labels)
    if layout.form == "binary":
        records = np.frombuffer(raw, np.uint8).reshape(-1, count + PIXELS)
        return records[:, count:], records[:, :count]
    content = _Unpickler(io.BytesIO(raw), encoding="bytes").load()
    labels = [content[key.encode()] for key in layout.labels]
    return content[b"data"], np.array(labels, np.uint8).T


class _Unpickler(pickle.Unpickler):
    """Builds arrays of bytes as the published pickles ask for them, whatever numpy is here."""

    def find_class(self, module: str, name: str) -> Any:
        return {
            "_reconstruct": lambda kind, shape, code: np.empty(shape, np.uint8),
            "ndarray": np.ndarray,
            "dtype": lambda name, align, copy: np.dtype(name, copy=True),
        }[name]
