"""Kernels that are compiled before they are needed, by a real compiler that has no GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from quadspike.analysis.health import Health, health
from quadspike.methods import METHODS
from quadspike.ops.rehearsal import rehearse
from quadspike.training import Recipe
from quadspike.training.datasets import make_data
from quadspike.training.distributed import Workers
from quadspike.training.judge import Judge
from quadspike.training.network import check_network, make_network
from quadspike.training.plan import Measured
from quadspike.training.rehearsal import rehearse_on_gpu
from quadspike.training.reproducible import algorithms
from quadspike.training.scoring import Counter
from quadspike.training.stop import Stop

pytest.importorskip("triton", reason="Triton is not installed")
CPU, GPU = torch.device("cpu"), torch.device("cuda")
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


def test_a_surrogate_s_sigmoid_compiles_for_a_gpu(found: dict[str, Any]) -> None:
    """Not the one that the interpreter runs in the other tests."""
    assert found["sigmoid"]["kernels"].count("backward_kernel") == 2


@pytest.mark.parametrize("name", ["exponential", "rectified", "gated"])
def test_lines_of_one_s_own_compile_for_a_gpu(found: dict[str, Any], name: str) -> None:
    kernels = found[name]["kernels"]
    assert [kernels.count(f"{kind}_kernel") for kind in ("apply", "backward")] == [1, 2]


def test_after_an_interrupt_one_can_rehearse_again(found: dict[str, Any]) -> None:
    assert found["interrupted"]["error"] == "KeyboardInterrupt"
    assert found["after that"]["error"] is None


@pytest.mark.parametrize(
    ("model", "device", "expected"), [("mlp", GPU, 1), ("mlp", CPU, 0), ("own", GPU, 0)]
)
def test_it_is_for_our_own_networks_on_a_gpu(
    model: str, device: torch.device, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rehearsed: list[object] = []
    monkeypatch.setattr("quadspike.training.rehearsal.rehearse", rehearsed.append)
    rehearse_on_gpu(lambda: None, Recipe("tiny", "digits", model), device)
    assert len(rehearsed) == expected


def test_what_runs_once_is_rehearsed_once_and_not_tuned(monkeypatch: pytest.MonkeyPatch) -> None:
    """The look at a network before the run, and that of every evaluation into its layers."""
    seen: list[str] = []

    def rehearse(work: Any, recipe: Recipe, device: torch.device) -> None:
        seen.append("rehearsal")
        work()

    for module in ("network", "judge"):
        monkeypatch.setattr(f"quadspike.training.{module}.rehearse_on_gpu", rehearse)
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", True)
    recipe = Recipe("tiny", "digits", "mlp", batch_size=512)
    data = make_data(recipe, None, CPU, Workers())
    model = make_network(recipe, data.geometry)
    model.register_forward_hook(
        lambda *_: seen.append("tuned" if torch.backends.cudnn.benchmark else "untuned")
    )
    check_network(model, recipe, data.geometry, CPU)
    assert seen == ["rehearsal", "untuned", "untuned"]
    judge = Judge(model, recipe, data, CPU, Workers(), Counter(model, recipe, CPU))
    for expected in (["tuned", "rehearsal", "untuned", "untuned"], ["tuned", "untuned"]):
        seen.clear()
        judge(Stop(None))
        assert seen == expected
    assert torch.backends.cudnn.benchmark


@pytest.mark.parametrize("key", METHODS)
def test_numbers_that_nobody_has_written_are_borne(key: str) -> None:
    """On a GPU an index made of one would end the process."""
    recipe = METHODS[key].applied_to(Recipe("tiny", "digits", "resnet8", backend="triton"))
    geometry = make_data(recipe, None, CPU, Workers()).geometry
    model = make_network(recipe, geometry)
    steps = Measured(model, recipe, geometry, CPU, recipe.manner_in(0))
    step, (inputs, labels) = steps._step(2)
    with algorithms(deterministic=True):  # what nobody has written is NaN
        seen: list[Health] = []
        rehearse(lambda: seen.append(health(model, inputs)))
        rehearse(partial(step, inputs, labels))
    assert not seen[0].finite_logits
