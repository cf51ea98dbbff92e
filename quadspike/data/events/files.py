"""Recordings where they lie: in a file of their own, or in a zip archive."""

from __future__ import annotations

import lzma
import os
import re
import secrets
import struct
import zipfile
import zlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from quadspike.errors import QuadspikeError

_BROKEN_ARCHIVE = (
    OSError, KeyError, RuntimeError, ValueError, EOFError, struct.error,
    zipfile.BadZipFile, zlib.error, lzma.LZMAError,
)  # fmt: skip
MOST_BYTES = 1 << 30
"""What a recording may unpack to, a hundred million events: and no small file fills memory."""

SIMULATED = "SIMULATED.json"
"""The file in a folder of simulated recordings that says so."""


@dataclass(frozen=True)
class Source:
    """One recording: a file, or the member `member` of the zip archive `path`."""

    path: Path
    member: str = ""

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"{self.path}!{self.member}" if self.member else str(self.path)

    @property
    def stem(self) -> str:
        """The name of the recording itself, without folders and ending."""
        return Path(self.member or self.path).stem

    @property
    def suffix(self) -> str:
        """The ending that names the format, in small letters."""
        return Path(self.member or self.path).suffix.lower()

    def read(self) -> bytes:
        """All its bytes."""
        if not self.member:
            return read_bytes(self.path)
        try:
            # Keyed by the process: a file position must not be shared across a fork.
            status = self.path.stat()
            version = (status.st_mtime_ns, status.st_size, status.st_ino)
            archive = _archive(self.path, version, os.getpid())
            size = archive.getinfo(self.member).file_size
            if size > MOST_BYTES:
                raise QuadspikeError(f"{self.name}: unpacks to {size:,} bytes, no recording")
            return archive.read(self.member)
        except QuadspikeError:
            raise
        except _BROKEN_ARCHIVE as error:
            raise QuadspikeError(f"{self.name}: cannot be read: {error}") from None

    def fingerprint(self) -> tuple[str, int, int]:
        """Name, bytes and time of change: what shows that a recording is another one."""
        try:
            status = self.path.stat()
        except OSError as error:
            raise QuadspikeError(f"{self.path}: cannot be read: {error.strerror}") from None
        name = Path(self.path.parent.name, self.path.name, self.member).as_posix()
        return name, status.st_size, status.st_mtime_ns


def named(name: str, folder: str | Path) -> str:
    """The name of a data set, which says so where its recordings are simulated."""
    return f"{name} (simulated)" if Path(folder, SIMULATED).exists() else name


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """A key that sorts numbers in names by their value.

    >>> sorted(["a_10", "a_9", "a_1"], key=natural)
    ['a_1', 'a_9', 'a_10']
    """
    parts = re.split(r"([0-9]+)", name)
    return tuple((int(part), part) if place % 2 else (-1, part) for place, part in enumerate(parts))


def listed(folder: Path) -> list[Path]:
    """What a folder holds, sorted by `natural`; nothing where there is none.

    Names that begin with a dot are passed over: a Mac leaves a shadow of every file, "._...".
    """
    try:
        found = [path for path in folder.iterdir() if not path.name.startswith(".")]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise QuadspikeError(f"{folder}: cannot be listed: {error.strerror}") from None
    return sorted(found, key=lambda path: natural(path.name))


def archive_members(path: Path) -> list[str]:
    """The names of the files in a zip archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            return [name for name in archive.namelist() if name and not name.endswith("/")]
    except _BROKEN_ARCHIVE as error:
        raise QuadspikeError(f"{path}: not a whole zip archive ({error}); fetch it anew") from None


def read_bytes(path: str | Path) -> bytes:
    """All bytes of a file."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise QuadspikeError(f"{path}: cannot be read: {error.strerror}") from None


def partial_name(target: Path) -> Path:
    """A name beside `target` that nobody else writes to."""
    return target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}.partial")


@lru_cache(maxsize=16)
def _archive(path: Path, version: tuple[int, ...], process: int) -> zipfile.ZipFile:
    return zipfile.ZipFile(path)
