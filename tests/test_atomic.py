"""Files are there whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from quadspike.atomic import write_atomic


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
