"""Runs one after the other: whose data are shared, and that nothing of a run outlives it."""

from __future__ import annotations

import gc
import inspect
import re
import weakref
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from quadspike.recipes import create_recipe
from quadspike.training import datasets, queue, shared_data, sources, start
from quadspike.training.queue import Watcher, run_all
from quadspike.training.recipe import Recipe
from quadspike.training.shared_data import SharedData, data_key
from quadspike.training.stop import OUT_OF_TIME

TINY = Recipe("tiny", "digits", "mlp", timesteps=2, epochs=1, batch_size=256)
CPU = torch.device("cpu")


@dataclass(frozen=True)
class Ended:
    failure: str = ""
    seconds: float | None = None

    def said(self) -> str:
        return "done"


@dataclass(frozen=True)
class Job:
    recipe: Recipe
    folder: Path

    @property
    def title(self):
        return self.folder.name

    def outcome(self):
        return None

    def finished(self, result, pace):
        return Ended(seconds=result.summary["seconds"])

    def failed(self, reason):
        return Ended(reason)

    def keep(self, outcome):
        pass


def test_the_key_has_every_field_that_makes_data():
    text = inspect.getsource(datasets) + inspect.getsource(sources)
    read = set(re.findall(r"\brecipe\.(\w+)", text))
    assert read == {*shared_data._FIELDS, "precision", "timesteps"}


@pytest.mark.parametrize(
    ("recipe", "change", "same"),
    [
        ("digits-cnn", {"lr": 0.5, "neuron": "lif", "model": "mlp", "timesteps": 2}, True),
        ("digits-cnn", {"precision": "bf16"}, True),
        ("digits-cnn", {"precision": "fp64"}, False),
        ("digits-cnn", {"validation": 100}, False),
        ("digits-cnn", {"seed": 1}, False),
        ("digits-cnn", {"batch_size": 32}, False),
        ("digits-events-cnn", {"timesteps": 2}, False),
        ("cifar10-dvs-vggsnn", {"timesteps": 4}, False),
        ("cifar10-dvs-vggsnn", {"frames_by": "time"}, False),
        ("cifar10-dvs-vggsnn", {"frame_size": 64}, False),
        ("cifar10-dvs-vggsnn", {"event_transform": "tet"}, False),
        ("cifar10-resnet19", {"cutout": 0}, False),
    ],
)
def test_data_are_the_same_where_nothing_of_them_changes(recipe, change, same):
    assert (data_key(create_recipe(recipe)) == data_key(create_recipe(recipe, **change))) is same


def test_one_data_set_is_in_memory_and_no_other(monkeypatch):
    alive, loaded = [], []

    def make(recipe, *rest):
        gc.collect()
        assert not any(ref() for ref in alive)  # the one before is gone already
        found = datasets.make_data(recipe, *rest)
        alive.append(weakref.ref(found))
        loaded.append(recipe.validation)
        return found

    monkeypatch.setattr(shared_data, "make_data", make)
    data = SharedData(CPU, None)
    for validation in (0, 0, 100, 100, 0):
        found = data.of(TINY.but(validation=validation))
        assert found.sizes.validation == validation
        assert data.of(TINY.but(validation=validation, lr=0.5)) is found
        del found
    assert loaded == [0, 100, 0]


@pytest.mark.parametrize("fails", [False, True])
def test_nothing_of_a_run_is_alive_when_the_next_begins(tmp_path, monkeypatch, fails):
    networks, seen = [], []
    real = start.make_network

    def make(*given):
        network = real(*given)
        networks.append(weakref.ref(network))
        return network

    class Watch(Watcher):
        def start(self, job, number, total):
            gc.collect()
            seen.append([ref() is None for ref in networks])

        def moment(self, now):
            if fails:
                raise KeyError("bug")

    monkeypatch.setattr(start, "make_network", make)
    jobs = [Job(TINY.but(lr=lr), tmp_path / str(lr)) for lr in (0.1, 0.2, 0.3)]
    ended, code = run_all(jobs, CPU, None, Watch(), lambda: None)
    assert code == int(fails)
    assert [bool(end.failure) for end in ended] == [fails] * 3
    assert seen == [[], [True], [True, True]]


def test_time_that_is_up_ends_the_run_and_starts_no_other(tmp_path, monkeypatch):
    started = []
    real = queue.train

    def train(recipe, **options):
        started.append(options["stop_after"])
        return real(recipe, **options)

    monkeypatch.setattr(queue, "train", train)
    jobs = [Job(TINY.but(lr=lr, epochs=50), tmp_path / str(lr)) for lr in (0.1, 0.2)]
    ended, code = run_all(jobs, CPU, None, Watcher(), lambda: None, stop_after=1e-3)
    assert (ended, code) == ([], OUT_OF_TIME)
    assert len(started) == 1
    assert 0 < started[0] < 1e-3  # what the data took is gone
