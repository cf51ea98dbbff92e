"""Runs of data that were given to `train` under a recipe that names others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from quadspike import QuadspikeError
from quadspike.data.split import Split
from quadspike.examine import examine_layers
from quadspike.records import Repository, export, record_run
from quadspike.records.energy import run_energy
from quadspike.training import TrainingData, evaluate, from_splits, train
from quadspike.training.distributed import Workers
from tests.record_cases import tiny

USES: dict[str, Callable[[Path], Any]] = {
    "evaluate": lambda folder: evaluate(folder, device="cpu"),
    "layers": lambda folder: examine_layers(folder, device="cpu"),
    "energy": lambda folder: run_energy(folder, device="cpu"),
    "export": lambda folder: export(folder, folder.parent / "export"),
    "record": lambda folder: record_run(folder, Repository(folder)),
}


def mine() -> tuple[Split, Split]:
    images = torch.randint(0, 256, (64, 1, 8, 8), dtype=torch.uint8)
    split = Split("mine", images, torch.arange(64) % 10, tuple("0123456789"))
    return split, split


def made() -> TrainingData:
    return from_splits(tiny(batch_size=16), *mine(), torch.device("cpu"), Workers())


@pytest.fixture(scope="module", params=[mine, made])
def given(request, tmp_path_factory) -> tuple[Path, Any]:
    torch.manual_seed(0)
    data, folder = request.param(), tmp_path_factory.mktemp("given") / "run"
    train(tiny(batch_size=16), data=data, out=folder, device="cpu")
    return folder, data


@pytest.mark.parametrize("use", USES)
def test_the_recipe_s_own_data_are_not_taken_for_them(given, use):
    with pytest.raises(QuadspikeError, match="the data were given to train, not loaded"):
        USES[use](given[0])


def test_they_can_be_given_again(given):
    folder, data = given
    found = evaluate(folder, data=data, device="cpu")
    assert found.fresh.accuracy == found.recorded


def test_a_run_goes_on_with_the_data_it_began_with(tmp_path):
    recipe, folder = tiny(batch_size=16), tmp_path / "run"
    train(recipe, data=made(), out=folder, device="cpu", stop_after=1e-6)
    with pytest.raises(QuadspikeError, match="give them again as data="):
        train(recipe, out=folder, device="cpu", resume=True)
    train(recipe, data=made(), out=folder, device="cpu", resume=True)


@pytest.mark.parametrize("field", [{"cutout": 16}, {"autoaugment": True}])
def test_what_a_recipe_does_to_images_it_loads_is_not_said_of_given_ones(tmp_path, field):
    recipe, run = tiny(batch_size=16, dataset="cifar10", **field), tmp_path / "run"
    with pytest.raises(QuadspikeError, match=r"is for data that are loaded.*from_splits"):
        train(recipe, data=mine(), out=run, device="cpu")
    assert not run.exists()
    data = from_splits(recipe, *mine(), torch.device("cpu"), Workers())
    train(recipe, data=data, out=run, device="cpu")
    found = evaluate(run, data=mine(), device="cpu")  # what is tested is shown plainly anyway
    assert found.fresh.accuracy == found.recorded


@pytest.mark.parametrize("first", [None, made])
def test_a_run_that_begins_anew_notes_the_data_it_has_then(tmp_path, first):
    recipe, folder = tiny(batch_size=16), tmp_path / "run"
    then = None if first else made()
    train(recipe, data=first and first(), out=folder, device="cpu", stop_after=1e-6)
    for name in ("checkpoint.safetensors", "record.json"):  # as a kill before the first save
        (folder / name).unlink()
    (folder / "metrics.jsonl").touch()
    train(recipe, data=then, out=folder, device="cpu", resume=True)
    found = evaluate(folder, data=then, device="cpu")
    assert found.fresh.accuracy == found.recorded
    if then is not None:
        with pytest.raises(QuadspikeError, match="give them as data="):
            evaluate(folder, device="cpu")


def test_data_given_to_a_run_that_had_loaded_as_many_are_noted(tmp_path):
    folder, (images, _) = tmp_path / "run", mine()
    many = images.subset(torch.arange(1438) % len(images))
    train(tiny(), out=folder, device="cpu", stop_after=1e-6)
    train(tiny(), data=(many, images), out=folder, device="cpu", resume=True)
    with pytest.raises(QuadspikeError, match="give them as data="):
        evaluate(folder, device="cpu")


def test_a_run_whose_data_have_been_loaded_is_used_as_ever(tmp_path):
    train(tiny(), out=tmp_path / "run", device="cpu")
    found = evaluate(tmp_path / "run", device="cpu")
    assert found.fresh.accuracy == found.recorded
