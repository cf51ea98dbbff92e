"""Whoever needs a run's weights refuses a folder without them alike."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from quadspike import QuadspikeError, train
from quadspike.examine import examine_layers
from quadspike.records import export
from quadspike.records.energy import run_energy
from quadspike.training import evaluate
from quadspike.training.folder import RunFolder

READERS = {
    "evaluate": evaluate,
    "layers": examine_layers,
    "energy": run_energy,
    "export": lambda run: export(run, run.parent / "exported"),
}


@pytest.mark.parametrize("reader", READERS)
def test_a_folder_without_weights(run: Path, reader: str) -> None:
    (run / "last.safetensors").unlink()
    with pytest.raises(QuadspikeError, match=r"no last\.safetensors: the run has ended"):
        READERS[reader](run)
    (run / "record.json").unlink()
    with pytest.raises(QuadspikeError, match=r"no last\.safetensors yet.* finish it with --resume"):
        READERS[reader](run)


@pytest.mark.parametrize("reader", READERS)
def test_a_folder_of_several_runs_is_told_as_that(run: Path, reader: str) -> None:
    folder = run.parent / "sweep"
    for name in ("first", "second"):
        (folder / name).mkdir(parents=True)
        (folder / name / "recipe.json").write_bytes((run / "recipe.json").read_bytes())
    (folder / "recipe.json").write_bytes((run / "recipe.json").read_bytes())
    with pytest.raises(QuadspikeError, match=r"is no run, it holds 2; .*such as .*first"):
        READERS[reader](folder)


def test_a_run_that_was_stopped_before_it_had_a_best_epoch(run: Path) -> None:
    (run / "best.safetensors").unlink()
    with pytest.raises(QuadspikeError, match=r"no best\.safetensors yet.* finish it with --resume"):
        evaluate(run, weights="best")


@pytest.mark.parametrize("reader", [*READERS, "init_from"])
def test_weights_in_which_a_bit_has_changed(run: Path, reader: str) -> None:
    content = bytearray((run / "last.safetensors").read_bytes())
    content[-2] ^= 1
    (run / "last.safetensors").write_bytes(content)
    start = partial(train, RunFolder(run).read_recipe(), out=run.parent / "next", device="cpu")
    readers = {**READERS, "init_from": lambda run: start(init_from=run)}
    with pytest.raises(QuadspikeError, match=r"last\.safetensors is damaged"):
        readers[reader](run)


@pytest.mark.parametrize("reader", READERS)
def test_a_network_of_ones_own(run: Path, reader: str) -> None:
    content = json.loads((run / "recipe.json").read_text())
    content["recipe"]["model"] = "own"
    (run / "recipe.json").write_text(json.dumps(content))
    with pytest.raises(QuadspikeError, match=r"holds a run of your own network; \w+"):
        READERS[reader](run)
