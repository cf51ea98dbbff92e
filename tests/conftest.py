from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from torch import nn

if not torch.cuda.is_available():  # before anything imports Triton
    os.environ.setdefault("TRITON_INTERPRET", "1")

from quadspike.norms import BatchNorm

if TYPE_CHECKING:
    from tests.kill_driver import Driver


def run_cli(*arguments: str) -> int:
    """Run the command line in this process; the exit code."""
    from quadspike.cli import main

    try:
        main(list(arguments))
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


@pytest.fixture
def mistaken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """What is said of a command line that is refused, which leaves nothing behind."""
    monkeypatch.chdir(tmp_path)

    def said(*arguments: str) -> str:
        assert run_cli(*arguments) == 2
        assert not list(tmp_path.iterdir())
        err = capsys.readouterr().err
        assert err.startswith("quadspike: ")
        return err

    return said


def calibrate(model: nn.Module, x: torch.Tensor) -> nn.Module:
    """Set the running statistics to those of one batch, then switch to evaluation."""
    norms = [module for module in model.modules() if isinstance(module, BatchNorm)]
    for norm in norms:
        norm.momentum = 1.0
    with torch.no_grad():
        model.train()(x)
    for norm in norms:
        norm.momentum = 0.1
    return model.eval()


@pytest.fixture(scope="module")
def driver() -> Iterator[Driver]:
    """A process that runs commands to which accidents happen."""
    from tests.kill_driver import Driver

    driver = Driver()
    yield driver
    driver.close()


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A git repository of the package, to keep records in."""
    from tests.record_cases import make_repository

    return make_repository(tmp_path_factory.mktemp("repository"))


@pytest.fixture
def records(repository: Path) -> Iterator[Path]:
    """Its folder of records, empty."""
    folder = repository / "records"
    yield folder
    shutil.rmtree(folder)
    folder.mkdir()


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture(params=["triton", "vectorised"])
def backend(request: pytest.FixtureRequest) -> str:
    """The fast paths."""
    if request.param == "triton":
        pytest.importorskip("triton")
    return str(request.param)


@pytest.fixture
def device() -> str:
    """Where kernels run: a GPU, or the CPU in Triton's interpreter."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def pytest_configure(config: pytest.Config) -> None:
    # Not in pyproject.toml: pytest would import quadspike, and torch Triton, before this file.
    config.addinivalue_line("filterwarnings", "error::quadspike.errors.QuadspikeWarning")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if torch.cuda.is_available():
        return
    skip = pytest.mark.skip(reason="needs a GPU, and torch sees none")
    for item in items:
        if "gpu" in item.keywords:
            item.add_marker(skip)


_QUICK = "--epochs 1 --batch-size 700 --timesteps 2 --optimizer adam --lr 0.003 --device cpu"
TRAIN = ("train", "digits-mlp", *_QUICK.split())
"""A run of a second."""


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of `TRAIN`, to be read only."""
    out = tmp_path_factory.mktemp("run") / "done"
    assert run_cli(*TRAIN, "--out", str(out)) == 0
    return out


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """A copy of that folder."""
    return Path(shutil.copytree(finished, tmp_path / "run"))
