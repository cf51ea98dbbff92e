"""Fetch one file whole or not at all: resumed where it broke off, checked, then renamed."""

from __future__ import annotations

import hashlib
import http.client
import os
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from quadspike.atomic import alone_in
from quadspike.data.progress import Progress
from quadspike.errors import QuadspikeError

PAUSES = (0.5, 1.0, 2.0, 4.0)
"""Seconds to wait before each further try of a connection that dropped."""

TIMEOUT = 30.0
_CHUNK = 1 << 18


class _Dropped(Exception):  # noqa: N818 (never leaves this file)
    """The connection ended early; what came so far can be used."""


def fetch(url: str, target: Path, *, size: int, md5: str, progress: Progress | None = None) -> Path:
    """Download `url` to `target`, which must then have `size` bytes and that MD5.

    Until it is whole it is called `<name>.part`; a later call goes on from there. A `target`
    that is already right is left alone; one that is wrong is never overwritten. Of several
    processes one fetches, and the others wait for it.
    """
    wanted = _Wanted(url, target, size, md5)
    try:
        with alone_in(target.parent):  # and not the file's, which may be begun anew
            wanted.complete(progress)
    except OSError as error:
        raise QuadspikeError(
            f"cannot write {target}: {error}; make room there, or choose another folder"
        ) from error
    return target


def md5_of(path: Path) -> str:
    """The checksum of a file that its publishers state."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


@dataclass(frozen=True)
class _Wanted:
    """One file to be had, and how to know it."""

    url: str
    target: Path
    size: int
    md5: str

    @property
    def part(self) -> Path:
        return self.target.with_name(self.target.name + ".part")

    @property
    def done(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    @property
    def description(self) -> str:
        return f"{self.target.name} ({self.size:,} bytes, MD5 {self.md5})"

    def problem(self, path: Path) -> str | None:
        """Why the file is not the one wanted, or None if it is."""
        if path.stat().st_size != self.size:
            return f"it has {path.stat().st_size:,} bytes, not {self.size:,}"
        found = md5_of(path)
        return None if found == self.md5 else f"its MD5 is {found}, not {self.md5}"

    def complete(self, progress: Progress | None) -> None:
        """Fill the partial file, check it, and give it its name, where that is not there."""
        if self.target.exists():
            if problem := self.problem(self.target):
                raise QuadspikeError(
                    f"{self.target}: {problem}; delete it, or put {self.description} in its place"
                )
            return
        resumed = self.done > 0
        self._fill(progress)
        problem = self.problem(self.part)
        if problem and resumed:
            # What lay there may have been of another file: once more, from the beginning.
            self.part.unlink()
            self._fill(progress)
            problem = self.problem(self.part)
        if problem:
            self.part.unlink()
            raise self._failure(f"{problem}; what came was removed")
        os.replace(self.part, self.target)

    def _fill(self, progress: Progress | None) -> None:
        if self.done > self.size:
            self.part.unlink()
        waits, furthest = iter(PAUSES), self.done
        while self.done < self.size:
            try:
                self._connect(progress)
            except _Dropped as drop:
                if self.done > furthest:
                    waits, furthest = iter(PAUSES), self.done
                pause = next(waits, None)
                if pause is None:
                    raise self._failure(
                        f"the connection kept dropping ({drop}); a later try goes on from "
                        f"byte {self.done:,}"
                    ) from drop
                time.sleep(pause)

    def _connect(self, progress: Progress | None) -> None:
        """One request for what is missing; returns when the file has its size."""
        start = self.done
        headers = {"Range": f"bytes={start}-"} if start else {}
        request = urllib.request.Request(self.url, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
                start = self._accept(response, start)
                self._receive(response, start, progress)
        except urllib.error.HTTPError as error:
            if error.code == 416:
                self.part.unlink(missing_ok=True)
                raise _Dropped("the server refused to go on from where it broke off") from error
            if error.code >= 500:
                raise _Dropped(f"status {error.code} {error.reason}") from error
            raise self._failure(f"status {error.code} {error.reason}") from error
        except urllib.error.URLError as error:
            if isinstance(error.reason, TimeoutError | ConnectionResetError):
                raise _Dropped(str(error.reason)) from error
            raise self._failure(str(error.reason)) from error
        except (http.client.HTTPException, ConnectionError, TimeoutError) as error:
            raise _Dropped(str(error) or type(error).__name__) from error

    def _accept(self, response: http.client.HTTPResponse, start: int) -> int:
        """Where the coming bytes belong; refuse an answer of another size."""
        if response.status == 206:
            return start
        offered = response.headers.get("Content-Length", str(self.size))
        if offered != str(self.size):
            raise self._failure(f"the server offers {offered} bytes, not {self.size}")
        return 0

    def _receive(
        self, response: http.client.HTTPResponse, start: int, progress: Progress | None
    ) -> None:
        with self.part.open("ab" if start else "wb") as file:
            done = start
            while done < self.size:
                try:
                    chunk = response.read(min(_CHUNK, self.size - done))
                except (OSError, http.client.HTTPException) as error:
                    raise _Dropped(str(error) or type(error).__name__) from error
                if not chunk:
                    raise _Dropped(f"it ended after {done:,} of {self.size:,} bytes")
                file.write(chunk)
                done += len(chunk)
                if progress:
                    progress(done, self.size)
            file.flush()
            os.fsync(file.fileno())

    def _failure(self, why: str) -> QuadspikeError:
        return QuadspikeError(
            f"could not download {self.url}: {why}. Without a network, put "
            f"{self.description} into {self.target.parent} by hand"
        )
