"""What `import quadspike` brings, and when."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

import quadspike
from quadspike.constant import constant


def loaded_by(code: str) -> set[str]:
    """The modules a new process has after running `code`."""
    shown = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(shown.stdout.split())


def test_the_command_line_explains_itself_without_torch():
    assert "torch" not in loaded_by("import quadspike.cli")


def test_torch_s_compiler_is_not_loaded_for_nothing():
    loaded = loaded_by("import quadspike; quadspike.train")
    assert "torch" in loaded
    assert "torch._dynamo" not in loaded


@pytest.mark.parametrize("name", quadspike.__all__)
def test_every_name_is_there(name):
    found = getattr(quadspike, name)
    assert getattr(found, "__name__", name).rpartition(".")[2] == name


def test_every_package_is_there_without_an_import_of_its_own():
    assert callable(quadspike.sweeps.sweep)
    assert set(quadspike.__all__) <= set(dir(quadspike))


def test_what_is_not_there_is_not_there():
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = quadspike.nothing
    with pytest.raises(ImportError):
        from quadspike import nothing  # noqa: F401


def test_the_mark_of_a_constant_is_torch_s():
    ours, theirs = constant(lambda: 1), torch.compiler.assume_constant_result(lambda: 1)
    assert vars(ours) == vars(theirs) != {}
