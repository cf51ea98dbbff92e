"""Files that are there whole or not at all, and files that only one process holds."""

from __future__ import annotations

import errno
import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from quadspike.errors import WriteError


def write_atomic(target: Path, content: bytes, flush: bool = True) -> None:
    """Write beside `target`, flush to the disk, and move into place; its folder is made.

    A kill at any moment leaves the old file or the new one; a full disk is an error that
    leaves the old one. Without `flush` that holds for the process, not for the machine. Of several
    processes one waits for the other.
    """
    _make_folder(target.parent)
    partial = target.with_name(f".{target.name}.partial")
    try:
        handle = _open_alone(partial)
        try:
            _write(handle, content, flush)
            os.replace(partial, target)
        except BaseException:
            partial.unlink(missing_ok=True)  # while it is still ours
            raise
        finally:
            os.close(handle)
        if flush:
            _flush_folder(target.parent)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        remedy = "make room there, then go on from it" if full else "give a place to write to"
        raise WriteError(
            f"cannot write {target}: {error.strerror or error}; what was saved before is "
            f"untouched: {remedy}"
        ) from None


def write_text(target: Path, text: str, flush: bool = True) -> None:
    """A text file, whole or not at all."""
    write_atomic(target, text.encode(), flush)


def lock(file: int, refusal: str = "") -> bool:
    """Lock an open file until it is closed or the process ends; False where there are no locks.

    While another process has it, wait; with a `refusal`, raise that instead.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (fcntl.LOCK_NB if refusal else 0))
    except BlockingIOError:
        raise WriteError(refusal) from None
    except OSError:
        return False
    return True


def check_file(path: Path) -> None:
    """Refuse a place for a file that could not be written, before the work that would end there."""
    if os.path.isdir(path):
        raise WriteError(f"cannot write {path}: it is a folder; name a file")
    check_folder(path.parent)


def check_folder(path: Path) -> None:
    """Refuse a folder that could not be written to, or made, before the work that is for it."""
    above = path.absolute()
    while not os.path.exists(above):
        above = above.parent
    try:
        tempfile.TemporaryFile(dir=above).close()  # it has no name that could stay behind
    except OSError as error:
        raise WriteError(
            f"cannot write to {path}: {error.strerror}; give a place to write to"
        ) from None


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Have `folder`, which is made, to oneself; of several processes one waits for the other."""
    _make_folder(folder)
    handle = os.open(folder, os.O_RDONLY)
    try:
        lock(handle)
        yield
    finally:
        os.close(handle)


def _make_folder(path: Path) -> None:
    """With those above it, where it is not there yet."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteError(
            f"cannot make the folder {path}: {error.strerror}; give a place to write to"
        ) from None


def _open_alone(path: Path) -> int:
    """The file at `path`, empty, and no other process's, as far as files can be locked there."""
    while True:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
        try:
            lock(handle)
            # Whoever had it before may have moved it away while we waited.
            if path.stat().st_ino == os.fstat(handle).st_ino:
                os.ftruncate(handle, 0)
                return handle
        except FileNotFoundError:
            pass
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _write(handle: int, content: bytes, flush: bool) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(handle, rest) :]
    if flush:
        os.fsync(handle)


def _flush_folder(folder: Path) -> None:
    # The rename itself is on the disk only once its folder is.
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
