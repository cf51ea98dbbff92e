"""Files are there whole or not at all."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from quadspike.atomic import lock, write_atomic
from quadspike.errors import QuadspikeError, WriteError


def test_files_are_flushed_before_they_are_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    for name in ("write", "fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(
            os, name, lambda *args, name=name, real=real: (order.append(name), real(*args))[1]
        )
    write_atomic(tmp_path / "file", b"content", flush=False)
    assert order == ["write", "replace"]
    order.clear()
    write_atomic(tmp_path / "file", b"content")
    assert order == ["write", "fsync", "replace", "fsync"]
    assert (tmp_path / "file").read_bytes() == b"content"


@pytest.mark.parametrize(
    ("code", "remedy"), [(errno.ENOSPC, "make room"), (errno.EACCES, "give a place to write to")]
)
def test_what_to_do_fits_what_went_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, remedy: str
) -> None:
    def fail(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(WriteError, match=remedy):
        write_atomic(tmp_path / "file", b"content")


def test_an_interrupted_write_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    write_atomic(tmp_path / "file", b"before")
    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomic(tmp_path / "file", b"content")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_bytes() == b"before"


def test_the_folder_is_made(tmp_path: Path) -> None:
    write_atomic(tmp_path / "new" / "deeper" / "file", b"content")
    assert (tmp_path / "new" / "deeper" / "file").read_bytes() == b"content"


@pytest.mark.parametrize("inside", ["", "deeper"])
def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, inside: str) -> None:
    (tmp_path / "taken").write_text("text")
    with pytest.raises(WriteError, match=r"cannot make the folder .*taken.*give a place"):
        write_atomic(tmp_path / "taken" / inside / "file", b"content")


def test_a_locked_file_is_refused_until_it_is_closed(tmp_path: Path) -> None:
    with (tmp_path / "file").open("ab") as other:
        with (tmp_path / "file").open("ab") as first:
            assert lock(first.fileno())
            with pytest.raises(QuadspikeError, match="wait for it"):
                lock(other.fileno(), "wait for it")
        assert lock(other.fileno(), "wait for it")


def test_a_file_system_without_locks_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", fail)
    assert not lock(0)
    assert not lock(0, "wait for it")


def test_of_two_writers_one_waits_for_the_other(tmp_path: Path) -> None:
    """Each process writes its own letter; a mixture, or a part, is nobody's."""
    target = tmp_path / "file"
    script = (
        "import sys, pathlib; from quadspike.atomic import write_atomic\n"
        "for _ in range(300):\n"
        "    write_atomic(pathlib.Path(sys.argv[1]), sys.argv[2].encode() * 100_000, flush=False)"
    )
    writers = [subprocess.Popen([sys.executable, "-c", script, target, each]) for each in "ab"]
    try:
        while any(writer.poll() is None for writer in writers):
            if target.exists():
                assert target.read_bytes() in (b"a" * 100_000, b"b" * 100_000)
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
    assert [writer.returncode for writer in writers] == [0, 0]
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
