"""Small data sets in the published forms of CIFAR."""

from __future__ import annotations

import hashlib
import io
import pickle
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from quadspike.data.cifar.layouts import PIXELS

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
        self.images, self.labels = {}, {}
        splits = {}
        for which in ("train", "test"):
            parts = getattr(official[0], which)
            classes = official[0].labels[-1].classes
            labels = rng.permutation(np.repeat(np.arange(classes), per_class * len(parts)))
            columns = [labels % column.classes for column in official[0].labels]
            self.labels[which] = np.stack(columns, 1).astype(np.uint8)
            self.images[which] = rng.integers(0, 256, (len(labels), PIXELS), dtype=np.uint8)
            splits[which] = classes * per_class
        self.files = {}
        self.layouts = tuple(self._layout(layout, splits) for layout in official)

    def _layout(self, layout, images_per_part):
        changed = {}
        for which, count in images_per_part.items():
            parts = []
            for place, part in enumerate(getattr(layout, which)):
                rows = slice(place * count, (place + 1) * count)
                raw = self._encode(layout, self.images[which][rows], self.labels[which][rows])
                self.files[layout.form, part.name] = raw
                digest = hashlib.new(part.algorithm, raw).hexdigest()
                parts.append(replace(part, images=count, digest=digest))
            changed[which] = tuple(parts)
        return replace(layout, **changed)

    @staticmethod
    def _encode(layout, images, labels) -> bytes:
        if layout.form == "binary":
            return np.concatenate([labels, images], 1).tobytes()
        columns = {
            column.key.encode(): labels[:, place].tolist()
            for place, column in enumerate(layout.labels)
        }
        names = [b"a_s_%06d.png" % i for i in range(len(images))]
        return old_pickle({b"batch_label": b"1", b"data": images, b"filenames": names, **columns})

    def layout(self, form):
        return next(layout for layout in self.layouts if layout.form == form)

    def unpack(self, folder: Path, form: str) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        for part in self.layout(form).parts:
            (folder / part.name).write_bytes(self.files[form, part.name])
        return folder

    def pack(self, path: Path, form: str, prefix="", without=()) -> Path:
        with tarfile.open(path, "w:gz", compresslevel=1) as archive:
            for part in reversed(self.layout(form).parts):
                if part.name in without:
                    continue
                raw = self.files[form, part.name]
                member = tarfile.TarInfo(f"{prefix}{self.layout(form).folder}/{part.name}")
                member.size = len(raw)
                archive.addfile(member, io.BytesIO(raw))
        return path


def changed(raw: bytes, place: int, value: int) -> bytes:
    return raw[:place] + bytes([value]) + raw[place + 1 :]
