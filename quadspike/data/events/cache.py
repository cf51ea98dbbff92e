"""Frames made once and kept in one memory-mapped file.

The file is a block of 4096 bytes with a line of JSON (format version, parameters, fingerprint
of the recordings, shape), then the frames as bytes. It is written under another name and
moved into place when whole, so a killed build leaves nothing that could be taken for a cache;
the next build begins anew and sweeps up. A lock makes a second process wait for the first.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import warnings
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from glob import escape
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from torch import Tensor

from quadspike.atomic import lock
from quadspike.data.events.clips import Clip, Decode, make_clips
from quadspike.data.events.files import Source, partial_name
from quadspike.data.events.frames import Framing, clipping
from quadspike.data.progress import Progress
from quadspike.errors import QuadspikeError, QuadspikeWarning

FORMAT = 1
_BLOCK = 4096


@dataclass(frozen=True)
class FrameCache:
    """Where the frames of some recordings are kept, and how they are made.

    `parameters` is what `decode` depends on besides the bytes: with the framing, the format
    version and the recordings' names, sizes and times it decides whether a cache is stale.
    """

    folder: Path
    name: str
    sources: Sequence[Source]
    decode: Decode
    framing: Framing
    parameters: dict[str, Any]

    def load(self, progress: Progress | None = None, workers: int | None = None) -> Tensor:
        """Frames `[N, T, 2, H, W]` as uint8, mapped from the cache, which is built if need be.

        Building takes `workers` processes: as many as it may use processors by default, none
        for few recordings.
        """
        wanted = self._identity()
        found = self._open(wanted)
        if found is not None:
            return found
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with self.path.with_suffix(".lock").open("ab") as file:
                alone = lock(file.fileno())
                found = self._open(wanted)
                if found is None:
                    self._build(wanted, alone, progress, workers)
        except OSError as error:
            raise self._unwritable(error) from None
        found = self._open(wanted)
        if found is None:
            raise QuadspikeError(f"{self.path}: changed while it was read; try again")
        return found

    @property
    def path(self) -> Path:
        """One file for each set of parameters, so that two settings can be kept side by side."""
        text = json.dumps(self._parameters(), sort_keys=True)
        return self.folder / f"{self.name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}.frames"

    def _parameters(self) -> dict[str, Any]:
        return {**self.parameters, **asdict(self.framing)}

    def _identity(self) -> dict[str, Any]:
        prints = json.dumps([source.fingerprint() for source in self.sources])
        return {
            "quadspike frames": FORMAT,
            "parameters": self._parameters(),
            "levels": self.framing.levels,
            "recordings": len(self.sources),
            "sources": hashlib.sha256(prints.encode()).hexdigest(),
        }

    def _open(self, wanted: dict[str, Any]) -> Tensor | None:
        """The frames, if the file is there, whole and of these recordings and parameters."""
        try:
            with self.path.open("rb") as file:
                header = json.loads(file.read(_BLOCK))
                size = os.fstat(file.fileno()).st_size
            shape = tuple(int(length) for length in header.pop("shape"))
            header.pop("clipped")
            checksum = header.pop("crc32")
        except (OSError, ValueError, KeyError, AttributeError, TypeError):
            return None
        if header != wanted or size != _BLOCK + torch.Size(shape).numel():
            return None
        # A private mapping: nothing written to the tensor reaches the file.
        frames = np.memmap(self.path, np.uint8, "c", _BLOCK, shape)
        return torch.from_numpy(frames) if zlib.crc32(frames.data) == checksum else None

    def _build(
        self,
        wanted: dict[str, Any],
        alone: bool,
        progress: Progress | None,
        workers: int | None,
    ) -> None:
        if alone:
            for left_over in self.folder.glob(f".{escape(self.path.name)}.*.partial"):
                left_over.unlink(missing_ok=True)
        partial = partial_name(self.path)
        try:
            with partial.open("xb") as file:
                with closing(make_clips(self.sources, self.decode, self.framing, workers)) as clips:
                    shape, clipped, checksum = self._write(file, clips, progress)
                if self._identity() != wanted:
                    raise QuadspikeError(f"{self.name}: recordings changed meanwhile; try again")
                found = {"shape": shape, "clipped": clipped, "crc32": checksum}
                header = json.dumps({**wanted, **found})
                file.seek(0)
                file.write(header.encode().ljust(_BLOCK - 1) + b"\n")
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, self.path)
        finally:
            partial.unlink(missing_ok=True)
        if clipped:
            pixels = torch.Size(shape).numel()
            text = clipping(clipped, pixels, 255 / self.framing.levels)
            warnings.warn(f"{self.name}: {text}", QuadspikeWarning, stacklevel=3)

    def _write(
        self, file: BinaryIO, clips: Iterator[Clip], progress: Progress | None
    ) -> tuple[tuple[int, ...], int, int]:
        total = len(self.sources)
        shape: tuple[int, ...] = ()
        clipped = checksum = 0
        file.write(bytes(_BLOCK))
        for done, clip in enumerate(clips, 1):
            if not shape:
                shape = clip.shape
                self._check_room(total * len(clip.data))
            elif clip.shape != shape:
                raise QuadspikeError(
                    f"{self.sources[done - 1].name}: its frames are {clip.shape}, those before "
                    f"{shape}; pass size to bring recordings of several sensors together"
                )
            file.write(clip.data)
            checksum = zlib.crc32(clip.data, checksum)
            clipped += clip.clipped
            if progress is not None:
                progress(done, total)
        return (total, *shape), clipped, checksum

    def _check_room(self, needed: int) -> None:
        if shutil.disk_usage(self.folder).free < needed:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _unwritable(self, error: OSError) -> QuadspikeError:
        return QuadspikeError(
            f"{self.folder}: frames cannot be kept there: {error.strerror or error}; "
            "give a folder that can be written and has room: cache=FOLDER in Python, or a data "
            "root of your own with links to the recordings"
        )
