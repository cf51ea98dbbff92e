"""Kernels that are compiled before they are needed, by a real compiler that has no GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("triton", reason="Triton is not installed")
ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What `rehearsed.py` prints."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment["TRITON_CACHE_DIR"] = str(tmp_path_factory.mktemp("cache"))
    command = [sys.executable, "-m", "tests.rehearsed"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_a_rehearsal_compiles_both_directions_by_other_threads(found: dict[str, Any]) -> None:
    names = ["statistics", "normalise", "apply", "backward", "backward", "gather"]
    kernels = sorted(f"{name}_kernel" for name in names)
    assert found["rehearsed"] == {"kernels": kernels, "here": False, "error": None}


def test_what_was_rehearsed_is_not_compiled_again(found: dict[str, Any]) -> None:
    assert found["again"] == {"kernels": [], "here": False, "error": None}
    assert found["launched"]["kernels"] == []


def test_a_rehearsal_launches_nothing_and_what_follows_does(found: dict[str, Any]) -> None:
    assert found["rehearsed"]["error"] is None
    assert found["launched"]["error"] is not None


def test_a_kernel_that_cannot_be_compiled_says_so_when_it_is_launched(
    found: dict[str, Any],
) -> None:
    assert found["broken"]["error"] is None
    assert found["broken, launched"]["error"] == "CompilationError"
