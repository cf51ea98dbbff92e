"""Sweeps: which settings, what they are called, and runs that go on."""

from __future__ import annotations

import json
import shutil
from itertools import pairwise

import pytest

from quadspike import QuadspikeError
from quadspike.comparison import compare
from quadspike.errors import DataError, WriteError
from quadspike.recipes import create_recipe
from quadspike.records import Store
from quadspike.records.store import _NAME
from quadspike.records.tables import table
from quadspike.sweeps import SweepFolder, plan, settings, sweep
from quadspike.training import queue, shared_data
from quadspike.training.folder import RunFolder
from quadspike.training.queue import Watcher
from quadspike.training.recipe import Recipe
from quadspike.training.shared_data import data_key
from tests.conftest import run_cli
from tests.record_cases import change, make_repository
from tests.watching import Count

TINY = Recipe("digits-mlp", "digits", "mlp", timesteps=2, epochs=1, batch_size=256, lr=0.05)


def trained(*given, **options):
    """Which runs a sweep trained, and how it ended."""
    watcher = Count()
    found = sweep(*given, device="cpu", watcher=watcher, **options)
    return list(watcher.steps), found


def names(*given):
    return [setting.name for setting in settings(TINY, *given)]


def test_every_combination_and_single_settings_each_once():
    over = {"window": ["threshold", "mean"], "eta": [0.5, 1.0]}
    found = settings(TINY, over, [{"window": "mean", "lr": 0.02}, {"eta": 1, "window": "mean"}])
    assert [setting.name for setting in found] == [
        "window-threshold_eta-0.5",
        "window-threshold_eta-1",
        "window-mean_eta-0.5",
        "window-mean_eta-1",
        "window-mean_lr-0.02",
    ]
    for setting in found:
        assert setting.recipe.name == "digits-mlp"
    assert found[4].recipe == TINY.but(window="mean", lr=0.02)
    assert names(None, [{"lr": 0.05}, {"lr": 0.1}]) == ["lr-0.05", "lr-0.1"]  # and nothing else
    assert names(None, [{"lr": 0.05}, {"timesteps": 2}]) == ["lr-0.05"]  # both are the recipe


def test_names_follow_the_recipe_s_order_and_are_those_of_files_and_records():
    assert names({"eta": [0.5], "window": ["mean"]}) == names({"window": ["mean"], "eta": [0.5]})
    numbers = [1e-5, 1e16, 0.1, 1.0, 123456.789, 0.1234567891]
    more = [{"window": -1.5}, {"eta": None}, {"detach_reset": True}]
    constants = {"neuron_constants": {"a": 0.3, "u_th": 1}}
    found = names({"lr": numbers}, [*more, constants])
    assert found == [
        "lr-1e-05",
        "lr-1e16",
        "lr-0.1",
        "lr-1",
        "lr-123456.789",
        "lr-0.1234567891",
        "window--1.5",
        "eta-null",
        "detach_reset-true",
        "neuron_constants-a-0.3_u_th-1",
    ]
    assert all(_NAME.fullmatch(name) for name in found)


def test_a_neuron_that_learns_beside_one_with_a_constant_of_its_own(tmp_path):
    learned, given = {"neuron": "qif-learned"}, {"neuron.u_th": 0.6}
    found = sweep(TINY, {}, [learned, given], out=tmp_path / "s", device="cpu")
    assert found.exit_code == 0
    assert "| qif-learned | 0.5 |" in found.table.replace("QIF-learned", "qif-learned")


def test_a_network_is_tried_on_frames_of_the_size_asked_for():
    recipe = create_recipe("cifar10-dvs-vggsnn")
    with pytest.raises(QuadspikeError, match="frame_size-8 is refused: vggsnn halves its input"):
        settings(recipe, {"frame_size": [8, 16]})


def test_a_name_that_no_folder_can_have_is_cut_and_told_apart():
    many = {field: [1 / 3] for field in ("lr", "momentum", "ema", "label_smoothing", "eta")}
    many |= {f"neuron.{name}": [1 / 7] for name in ("a", "u1", "u2")} | {"neuron.u_th": [5 / 7]}
    many |= {"weight_decay": [1 / 3, 1 / 7], "warmup_epochs": [1 / 7]}
    found = names(many)
    assert len(set(found)) == 2
    assert all(len(name) == 200 and _NAME.fullmatch(name) for name in found)


@pytest.mark.parametrize(
    ("over", "also", "said"),
    [
        ({"windwo": ["mean"]}, [], "did you mean 'window'"),
        ({"eta": [1, -1, -2]}, [], r"eta--1 is refused: eta must be.*and 1 more"),
        ({"window": ["mean"]}, [{"surrogate": "arctan", "window": "mean"}], "surrogate-arctan_win"),
        ({"neuron": "lif"}, [], r"neuron takes a list, got 'lif'; write \['lif'\]"),
        ({"lr": 0.1}, [], "lr takes a list, got 0.1"),
        ({}, {"lr": 0.1}, r"also takes a list, got .*; write \[{'lr': 0.1}\]"),
        ({"seed": [0, 1]}, [], "--seeds"),
        ({}, [{"name": "mine"}], "'name'"),
        ({"model": ["mlp", "own"]}, [], "model-own is refused"),
        ({"validation": [0, 1438]}, [], "validation-1438 is refused: .* the 1,438 samples of dig"),
        ({"batch_size": [64, 2000]}, [], "batch_size-2000 is refused: .* than the 1,438 samples"),
        ({"validation": [1200]}, [], "batch of 256 is larger than the 238 samples"),
        ({"dropout": [0, 0.2]}, [], "dropout-0.2 is refused: mlp has no dropout"),
        ({}, [], "something to vary"),
        ({"lr": []}, [], "something to vary"),
        ({}, [{}], "at least one FIELD=VALUE"),
    ],
)
def test_a_wrong_setting_is_refused_before_any_run(tmp_path, over, also, said):
    with pytest.raises(QuadspikeError, match=said):
        sweep(TINY, over, also, out=tmp_path / "s", device="cpu")
    assert not (tmp_path / "s").exists()


def test_only_what_is_missing_is_run(tmp_path):
    out = tmp_path / "s"
    first, _ = trained(TINY, {"window": ["mean"]}, out=out)
    assert first == ["window-mean-seed0"]
    before = (out / "window-mean-seed0" / "last.safetensors").read_bytes()
    more = {"window": ["threshold", "mean"]}
    assert trained(TINY, more, out=out)[0] == ["window-threshold-seed0"]
    again, found = trained(TINY, more, [{"lr": 0.02}], out=out, seeds=2)
    assert again == [
        "lr-0.02-seed0",
        "window-threshold-seed1",
        "window-mean-seed1",
        "lr-0.02-seed1",
    ]
    assert len(found.ended) == 6
    assert (out / "window-mean-seed0" / "last.safetensors").read_bytes() == before
    # A command that names fewer runs leaves the others in the table.
    assert trained(TINY, {"window": ["mean"]}, out=out)[1].table == found.table
    assert trained(TINY, more, [{"lr": 0.02}], out=out, seeds=2)[0] == []


def test_a_stopped_sweep_has_a_table_and_goes_on_to_the_same_weights(tmp_path, monkeypatch):
    long, over = TINY.but(epochs=2), {"window": ["mean", "threshold"]}
    sweep(long, over, out=tmp_path / "whole", device="cpu")

    class Interrupt(Count):
        def moment(self, now):
            super().moment(now)
            if self.name == "window-threshold-seed0" and now.total_step == 3:
                monkeypatch.setattr("quadspike.training.stop.Stop.code", 143)

    found = sweep(long, over, out=tmp_path / "s", device="cpu", watcher=Interrupt())
    monkeypatch.undo()
    assert found.exit_code == 143
    assert [end.name for end in found.ended] == ["window-mean-seed0"]
    assert "Not finished: `window-threshold-seed0`.\n" in (tmp_path / "s/table.md").read_text()
    assert trained(long, over, out=tmp_path / "s")[0] == ["window-threshold-seed0"]
    weights = [
        (tmp_path / folder / "window-threshold-seed0" / "last.safetensors").read_bytes()
        for folder in ("whole", "s")
    ]
    assert weights[0] == weights[1]
    assert "Not finished" not in (tmp_path / "s/table.md").read_text()


def test_a_failure_is_noted_and_the_rest_go_on(tmp_path):
    out, over = tmp_path / "s", {"lr": [1e30, 0.05]}
    wild = TINY.but(momentum=0.0)
    ran, found = trained(wild, over, out=out)
    assert found.exit_code == 1
    assert "not a finite number" in found.ended[0].failure
    assert found.ended[1].accuracy > 0
    assert "- `lr-1e30-seed0` failed: the loss" in (out / "table.md").read_text()
    assert "| 1 |" in found.table  # the row of the other
    ran, again = trained(wild, over, out=out)
    assert ran == []  # kept as failed ...
    assert again == found
    (out / "lr-1e30-seed0.json").unlink()
    assert trained(wild, over, out=out)[0] == ["lr-1e30-seed0"]  # ... until asked to try again


def test_a_setting_whose_data_cannot_be_made_costs_no_other(tmp_path, monkeypatch):
    # As of photographs that are fewer than the official ones.
    monkeypatch.setattr("quadspike.training.sizes.TRAINING_SAMPLES", {})
    out, over = tmp_path / "s", {"validation": [1438, 100]}
    ran, found = trained(TINY, over, out=out)
    assert ran == ["validation-100-seed0"]
    assert found.exit_code == 1
    assert found.ended[0].failure.startswith("validation=1438 must leave some of the 1,438")
    assert "- `validation-1438-seed0` failed: validation=1438" in found.table


def test_data_that_are_not_there_end_the_sweep_and_fail_no_setting(tmp_path):
    out, over = tmp_path / "s", {"dataset": ["cifar10", "digits"], "model": ["mlp"]}
    with pytest.raises(DataError, match="cifar"):
        sweep(TINY, over, out=out, device="cpu", data_root=tmp_path / "nowhere")
    assert not list(out.glob("*-seed0.json"))


def test_a_killed_sweep_has_the_table_and_the_curves_of_what_was_finished(tmp_path, monkeypatch):
    real = queue.train

    def train(recipe, **options):
        if recipe.window == "threshold":
            raise KeyboardInterrupt
        return real(recipe, **options)

    monkeypatch.setattr(queue, "train", train)
    with pytest.raises(KeyboardInterrupt):
        sweep(TINY, {"window": ["mean", "threshold"]}, out=tmp_path / "s", device="cpu")
    text = (tmp_path / "s" / "table.md").read_text()
    assert "| 1 |" in text
    assert "Not finished: `window-threshold-seed0`" in text
    assert (tmp_path / "s" / "curves.png").exists()


def test_a_run_that_another_process_trains_ends_the_sweep_and_has_not_failed(tmp_path):
    out, over = tmp_path / "s", {"lr": [0.01, 0.02]}
    sweep(TINY, {"lr": [0.02]}, out=out, device="cpu")
    with (
        RunFolder(out / "lr-0.01-seed0").opened(TINY.but(lr=0.01)),
        pytest.raises(WriteError, match="another process is training in"),
    ):
        sweep(TINY, over, out=out, device="cpu")
    ran, found = trained(TINY, over, out=out)
    assert (ran, found.exit_code) == (["lr-0.01-seed0"], 0)


class Remover(Watcher):
    """Takes the folder of all runs away while the second one trains."""

    def __init__(self, out):
        self.out, self.runs = out, 0

    def start(self, job, number, total):
        self.runs = number

    def epoch(self, metrics):
        if self.runs == 2:
            shutil.rmtree(self.out)


@pytest.mark.filterwarnings("ignore:cannot write .*tensorboard")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_sweep_removed_meanwhile_is_made_anew(tmp_path):
    out, over = tmp_path / "s", {"lr": [0.01, 0.02, 0.03]}
    found = sweep(TINY, over, out=out, device="cpu", watcher=Remover(out))
    assert (len(found.ended), found.exit_code) == (3, 0)
    assert "Not finished: `lr-0.01-seed0`" in found.table
    ran, again = trained(TINY, over, out=out)
    assert ran == ["lr-0.01-seed0"]
    assert again.ended[1:] == found.ended[1:]


@pytest.mark.filterwarnings("ignore:cannot write .*tensorboard")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_comparison_removed_meanwhile_goes_on_too(tmp_path):
    out, methods = tmp_path / "c", ["tet", "stbp-tdbn"]
    compare(TINY, methods, out=out, device="cpu", watcher=Remover(out))
    watcher = Count()
    assert compare(TINY, methods, out=out, device="cpu", watcher=watcher).exit_code == 0
    assert list(watcher.steps) == ["tet seed 0"]


def test_data_are_loaded_once_and_not_shared_where_they_differ(tmp_path, monkeypatch):
    real, loaded = shared_data.make_data, []

    def make(recipe, *rest):
        loaded.append((recipe.validation, recipe.seed))
        return real(recipe, *rest)

    monkeypatch.setattr(shared_data, "make_data", make)
    over = {"window": ["mean", "threshold"], "validation": [0, 100]}
    sweep(TINY, over, out=tmp_path / "s", seeds=2, device="cpu")
    assert loaded == [(0, 0), (100, 0), (0, 1), (100, 1)]
    for window in ("mean", "threshold"):
        for validation in (0, 100):
            name = f"window-{window}_validation-{validation}-seed1"
            summary = json.loads((tmp_path / "s" / name / "record.json").read_text())["summary"]
            assert (summary["validation_accuracy"] is not None) is (validation > 0)


def test_a_recipe_asked_for_by_other_fields_is_not_trained_again(tmp_path):
    sweep(TINY, {"lr": [0.01]}, out=tmp_path / "s", device="cpu")
    over = {"lr": [0.01, 0.02], "neuron": [TINY.neuron]}
    again = sweep(TINY, over, out=tmp_path / "s", device="cpu")
    assert [end.name for end in again.ended] == [
        "lr-0.01-seed0",
        f"neuron-{TINY.neuron}_lr-0.02-seed0",
    ]
    assert "2 runs" not in again.table
    (tmp_path / "s" / "lr-0.01-seed0" / "recipe.json").write_text("{")
    assert sweep(TINY, {"lr": [0.03]}, out=tmp_path / "s", device="cpu").exit_code == 0


def test_settings_of_the_same_data_are_next_to_each_other(tmp_path):
    chosen = settings(TINY, {"lr": [0.1, 0.2], "batch_size": [128, 256]})
    jobs = plan(chosen, 2, SweepFolder(tmp_path))
    keys = [data_key(job.recipe) for job in jobs]
    assert sum(a != b for a, b in pairwise(keys)) == 3
    assert [job.seed for job in jobs] == [0] * 4 + [1] * 4


def test_another_recipe_or_something_else_in_the_folder_is_refused(tmp_path, monkeypatch):
    sweep(TINY, {"window": ["mean"]}, out=tmp_path / "s", device="cpu")
    with pytest.raises(QuadspikeError, match=r"epochs 1 -> 2.*choose another --out"):
        sweep(TINY.but(epochs=2), {"window": ["mean"]}, out=tmp_path / "s", device="cpu")
    with pytest.raises(QuadspikeError, match="something else than a sweep"):
        sweep(TINY, {"lr": [1]}, out=tmp_path / "s" / "window-mean-seed0", device="cpu")
    change(tmp_path / "s/window-mean-seed0/recipe.json", ("recipe", "window"), "threshold")
    with pytest.raises(QuadspikeError, match="window 'threshold' -> 'mean'"):
        sweep(TINY, {"window": ["mean"]}, out=tmp_path / "s", device="cpu")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(QuadspikeError, match="a sweep is one process"):
        sweep(TINY, {"window": ["mean"]}, out=tmp_path / "t", device="cpu")


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("sweep.json", "no list of a sweep's runs"),
        ("window-mean-seed0.json", "delete it to run that again"),
        ("window-mean-seed0/record.json", "damaged"),
    ],
)
def test_damaged_files_are_named(tmp_path, file, said):
    sweep(TINY, {"window": ["mean"]}, out=tmp_path / "s", device="cpu")
    (tmp_path / "s" / file).write_text("{")
    with pytest.raises(QuadspikeError, match=said):
        sweep(TINY, {"window": ["mean"]}, out=tmp_path / "s", device="cpu")


def test_the_table_is_that_of_the_records_of_the_same_runs(tmp_path, capsys):
    out, records = tmp_path / "s", make_repository(tmp_path / "repository") / "records"
    over, wild = {"window": ["mean", "threshold"]}, [{"lr": 1e30, "momentum": 0}]
    small = TINY.but(validation=100, epochs=2)
    found = sweep(small, over, out=out, seeds=2, device="cpu")
    for end in found.ended:
        for key in ("commit", "clean"):
            change(out / end.name / "record.json", ("environment", key), None)
    failed = sweep(small, over, wild, out=out, device="cpu")
    SweepFolder(out).extend(["lr-7-seed0"])
    add = ("records", "add", str(out), "--name", "study", "--records", str(records))
    assert run_cli(*add) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.endswith(" KB") for line in said] == [True] * 4 + [False] * 2
    assert [line.split(":")[0] for line in said[:4]] == [
        str(records / "runs" / "study" / end.name) for end in found.ended
    ]
    assert said[4].startswith("lr-1e30_momentum-0-seed0 is left out, it failed: the loss")
    assert said[5] == "lr-7-seed0 is left out, it is not finished"
    assert table(Store(records), "study") == found.table
    assert failed.table.startswith(found.table)
    assert run_cli("records", "verify", "--records", str(records)) == 0
    change(out / found.ended[0].name / "record.json", ("metrics", 0, "train_loss"), 7.0)
    capsys.readouterr()
    assert run_cli(*add) == 1
    said = capsys.readouterr().out.splitlines()
    assert "different epochs" in said[0]
    assert all("there already" in line for line in said[1:4])
    assert run_cli(*add, "--export", str(tmp_path)) == 2
