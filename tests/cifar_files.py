"""Small data sets in the published forms of CIFAR."""

from __future__ import annotations

import hashlib
import io
import pickle
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from quadspike.data.cifar.layouts import CIFAR10, PIXELS

NEW_NUMPY, OLD_NUMPY = b"cnumpy._core.multiarray\n", b"cnumpy.core.multiarray\n"


class OldPickler(pickle._Pickler):
    """Writes as Python 2 did, in which the published files were made: bytes are strings."""

    dispatch = dict(pickle._Pickler.dispatch)

    def save_bytes(self, value):
        self.write(b"T" + len(value).to_bytes(4, "little") + value)
        self.memoize(value)

    dispatch[bytes] = save_bytes


def old_pickle(content) -> bytes:
    stream = io.BytesIO()
    OldPickler(stream, protocol=2).dump(content)
    return stream.getvalue().replace(NEW_NUMPY, OLD_NUMPY)


class Mini:
    """A data set like CIFAR, a few images a file, in both forms."""

    def __init__(self, official, per_class=2):
        self.official = official
        rng = np.random.default_rng(0)
        classes = 10 if official is CIFAR10 else 100
        self.images, self.labels, self.files = {}, {}, {}
        for which in ("train", "test"):
            count = classes * per_class * len(getattr(official[0], which))
            labels = rng.permutation(count) % classes
            columns = [labels % 20, labels][-len(official[0].labels) :]
            self.labels[which] = np.stack(columns, 1).astype(np.uint8)
            self.images[which] = rng.integers(0, 256, (count, PIXELS), dtype=np.uint8)
        self.layouts = tuple(map(self._layout, official))

    def _layout(self, layout):
        algorithm = hashlib.sha1 if layout.form == "binary" else hashlib.md5
        changed = {}
        for which in ("train", "test"):
            names = getattr(layout, which)
            images = np.split(self.images[which], len(names))
            labels = np.split(self.labels[which], len(names))
            for name, *content in zip(names, images, labels, strict=True):
                self.files[layout.form, name] = self._encode(layout, *content)
            changed[which] = {
                name: algorithm(self.files[layout.form, name]).hexdigest() for name in names
            }
        return replace(layout, **changed)

    @staticmethod
    def _encode(layout, images, labels) -> bytes:
        if layout.form == "binary":
            return np.concatenate([labels, images], 1).tobytes()
        columns = {
            key.encode(): labels[:, place].tolist() for place, key in enumerate(layout.labels)
        }
        names = [b"a_s_%06d.png" % i for i in range(len(images))]
        return old_pickle({b"batch_label": b"1", b"data": images, b"filenames": names, **columns})

    def layout(self, form):
        return next(layout for layout in self.layouts if layout.form == form)

    def unpack(self, folder: Path, form: str) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        for name in self.layout(form).files:
            (folder / name).write_bytes(self.files[form, name])
        return folder

    def pack(self, path: Path, form: str, prefix="", without=()) -> Path:
        with tarfile.open(path, "w:gz", compresslevel=1) as archive:
            for name in reversed(self.layout(form).files):
                if name in without:
                    continue
                raw = self.files[form, name]
                member = tarfile.TarInfo(f"{prefix}{self.layout(form).folder}/{name}")
                member.size = len(raw)
                archive.addfile(member, io.BytesIO(raw))
        return path


def changed(raw: bytes, place: int, value: int) -> bytes:
    return raw[:place] + bytes([value]) + raw[place + 1 :]
