"""What `import quadspike` brings, and when."""

from __future__ import annotations

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

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


PACKAGE = Path(quadspike.__file__).parent


def imported(source: Path) -> set[str]:
    """The parts a file imports from, at its top or inside of a function."""
    found = set()
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "quadspike":
            found |= {f"quadspike.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return {name.split(".")[1] for name in found if name.startswith("quadspike.")}


def test_imports_point_downward_as_the_page_says():
    needs: dict[str, set[str]] = {}
    for source in PACKAGE.rglob("*.py"):
        inside = source.relative_to(PACKAGE)
        if inside.name in ("__init__.py", "__main__.py") and len(inside.parts) == 1:
            continue
        part = inside.parts[0].removesuffix(".py")
        needs.setdefault(part, set()).update(imported(source) - {part})
    TopologicalSorter(needs).prepare()  # raises where there is a circle
    page = (PACKAGE.parent / "docs" / "design.md").read_text()
    tree = page[page.index("quadspike/\n") :].split("```")[0].splitlines()[1:]
    order = [line.split()[0].removesuffix("/").removesuffix(".py") for line in tree]
    for place, part in enumerate(order):
        assert not needs[part] & set(order[:place]), f"{part} imports from above"
    assert {part for part in needs if (PACKAGE / part).is_dir()} <= set(order)
