"""Comparisons: runs that go on, failures that are noted."""

from __future__ import annotations

import errno
import json
import os
import re

import pytest

from quadspike import QuadspikeError
from quadspike.comparison import Outcome, compare
from quadspike.methods import METHODS
from quadspike.recipes import create_recipe
from quadspike.training import queue
from quadspike.training.observer import Beginning, Moment
from quadspike.training.pace import Pace
from quadspike.training.recipe import Recipe
from tests.watching import Count

TINY = Recipe(
    "tiny", "digits", "mlp", epochs=1, batch_size=256, optimizer="adam", lr=0.01, timesteps=2
)


def test_runs_lie_where_they_should_and_the_table_is_theirs(tmp_path):
    found = compare(TINY, ["stbp-tdbn", "tet"], out=tmp_path / "c", seeds=2, device="cpu")
    assert found.exit_code == 0
    for key in ("stbp-tdbn", "tet"):
        accuracies = []
        for seed in (0, 1):
            record = json.loads((tmp_path / "c" / key / f"seed-{seed}" / "record.json").read_text())
            assert record["recipe"]["seed"] == seed
            assert record["recipe"]["loss"] == METHODS[key].loss
            accuracies.append(100 * record["summary"]["test_accuracy"])
        row = next(row for row in found.rows if row.method.key == key)
        assert row.accuracy == pytest.approx(sum(accuracies) / 2)
        assert row.spread == pytest.approx(abs(accuracies[0] - accuracies[1]) / 2**0.5)
        assert row.parameters == record["parameters"]
        assert row.step_ms > 0
        assert row.memory_gib is None
    names = {path.name for path in (tmp_path / "c").iterdir() if path.is_file()}
    tables = {"table.md", "table.csv", "table.tex"}
    pictures = {"accuracy_energy.png", "accuracy_energy.svg"}
    assert names - {".lock"} == {"comparison.json", "recipe.json", *tables, *pictures}
    kept = json.loads((tmp_path / "c" / "comparison.json").read_text())
    assert kept["rows"][0]["method"] == "stbp-tdbn"
    assert len(kept["outcomes"]) == 4


def test_the_headline_is_the_last_epoch_s_and_only_steps_have_a_pace(tmp_path, monkeypatch):
    real = queue.train

    def train(*given, **options):
        result = real(*given, **options)
        result.summary.update(best_test_accuracy=1.0, peak_memory_gib=1.5)
        return result

    monkeypatch.setattr(queue, "train", train)
    found = compare(TINY, ["tet"], out=tmp_path / "c", device="cpu")
    record = json.loads((tmp_path / "c" / "tet" / "seed-0" / "record.json").read_text())
    assert found.rows[0].accuracy == 100 * record["summary"]["test_accuracy"] < 100
    assert found.outcomes[0].best_accuracy == 1.0
    assert found.rows[0].memory_gib == 1.5
    (tmp_path / "c" / "tet" / "seed-0.json").unlink()
    again = compare(TINY, ["tet"], out=tmp_path / "c", device="cpu").rows[0]
    assert again.accuracy == found.rows[0].accuracy
    assert again.step_ms is again.memory_gib is None  # no step was left to measure


def test_the_code_of_every_run_is_named_not_that_of_the_last_call(tmp_path, monkeypatch):
    def called_at(commit):
        version = (commit * 40, True)
        monkeypatch.setattr("quadspike.training.record.code_version", lambda: version)

    called_at("a")
    interrupt = "quadspike.training.stop.Stop.code"
    with monkeypatch.context() as stopping:
        stopping.setattr(interrupt, 143)
        compare(TINY, ["tet"], out=tmp_path / "c", device="cpu")
    called_at("b")
    compare(TINY, ["tet"], out=tmp_path / "c", device="cpu")
    called_at("c")
    compare(TINY, ["tet", "stbp-tdbn"], out=tmp_path / "c", device="cpu")
    called_at("d")  # for nothing: all is done
    compare(TINY, ["tet", "stbp-tdbn"], out=tmp_path / "c", device="cpu")
    table = (tmp_path / "c" / "table.md").read_text()
    assert re.findall(r"quadspike \S+ at (\w)", table) == ["a", "b", "c"]


def test_a_run_is_what_it_would_be_alone(tmp_path):
    base = TINY.but(seed=5)
    compare(base, ["stbp-tdbn", "tet"], out=tmp_path / "c", seeds=2, device="cpu")
    folders = [path.name for path in (tmp_path / "c" / "tet").iterdir() if path.is_dir()]
    assert sorted(folders) == ["seed-5", "seed-6"]
    queue.train(METHODS["tet"].applied_to(base.but(seed=6)), out=tmp_path / "alone", device="cpu")
    ours = tmp_path / "c" / "tet" / "seed-6" / "last.safetensors"
    assert ours.read_bytes() == (tmp_path / "alone" / "last.safetensors").read_bytes()


def test_what_is_finished_is_not_run_again_and_what_is_new_is(tmp_path):
    first = compare(TINY, ["tet"], out=tmp_path / "c", device="cpu")
    watcher = Count()
    second = compare(TINY, ["tet", "stbp-tdbn"], out=tmp_path / "c", device="cpu", watcher=watcher)
    assert watcher.steps.keys() == {"stbp-tdbn seed 0"}
    assert second.rows[0] == first.rows[0]


def test_a_stopped_comparison_goes_on_to_the_same_weights(tmp_path, monkeypatch):
    long = TINY.but(epochs=2)
    compare(long, ["stbp-tdbn", "tet"], out=tmp_path / "whole", device="cpu")

    class Interrupt(Count):
        def moment(self, now):
            super().moment(now)
            if now.total_step == 3:
                monkeypatch.setattr("quadspike.training.stop.Stop.code", 143)

    stopped = compare(
        long, ["stbp-tdbn", "tet"], out=tmp_path / "c", device="cpu", watcher=Interrupt()
    )
    monkeypatch.undo()
    assert stopped.exit_code == 143
    assert stopped.outcomes == ()
    assert "STBP-tdBN | —" in (tmp_path / "c" / "table.md").read_text()
    watcher = Count()
    again = compare(long, ["stbp-tdbn", "tet"], out=tmp_path / "c", device="cpu", watcher=watcher)
    assert again.exit_code == 0
    assert watcher.steps["stbp-tdbn seed 0"] == watcher.steps["tet seed 0"] - 4
    for key in ("stbp-tdbn", "tet"):
        weights = [tmp_path / f / key / "seed-0" / "last.safetensors" for f in ("whole", "c")]
        assert weights[0].read_bytes() == weights[1].read_bytes()


@pytest.mark.parametrize("error", [QuadspikeError("not a finite number"), KeyError("bug")])
def test_a_failure_is_noted_and_the_rest_go_on(tmp_path, monkeypatch, error):
    real = queue.train

    def train(recipe, **options):
        if recipe.loss == "tet":
            raise error
        return real(recipe, **options)

    monkeypatch.setattr(queue, "train", train)
    found = compare(TINY, ["tet", "stbp-tdbn"], out=tmp_path / "c", device="cpu")
    assert found.exit_code == 1
    failed, good = found.rows
    assert failed.accuracy is None
    assert ("finite" in failed.failures[0]) or ("KeyError: 'bug'" in failed.failures[0])
    assert good.accuracy > 0
    assert "failed (" in (tmp_path / "c" / "table.md").read_text()
    monkeypatch.undo()
    watcher = Count()
    compare(TINY, ["tet", "stbp-tdbn"], out=tmp_path / "c", device="cpu", watcher=watcher)
    assert not watcher.steps  # kept as failed ...
    (tmp_path / "c" / "tet" / "seed-0.json").unlink()
    found = compare(TINY, ["tet"], out=tmp_path / "c", device="cpu", watcher=watcher)
    assert found.rows[0].accuracy > 0  # ... until someone asks for another try


def test_a_full_disk_ends_it_and_is_no_method_s_failure(tmp_path, monkeypatch):
    real = os.fsync

    def nearly_full(handle):
        if os.fstat(handle).st_size > 50_000:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(handle)

    monkeypatch.setattr("quadspike.atomic.os.fsync", nearly_full)
    watcher = Count()
    with pytest.raises(QuadspikeError, match=r"No space left.*make room"):
        compare(TINY, ["tet", "stbp-tdbn"], out=tmp_path / "c", device="cpu", watcher=watcher)
    assert "stbp-tdbn seed 0" not in watcher.steps
    monkeypatch.undo()
    found = compare(TINY, ["tet", "stbp-tdbn"], out=tmp_path / "c", device="cpu")
    assert all(row.accuracy > 0 for row in found.rows)


def test_what_cannot_be_compared_is_refused_before_any_work(tmp_path):
    with pytest.raises(QuadspikeError, match="larger than the 1,438 samples"):
        compare(TINY.but(batch_size=2000), ["tet"], out=tmp_path / "c", device="cpu")
    with pytest.raises(QuadspikeError, match=r"methods are a list, got 'tet'; write \['tet'\]"):
        compare(TINY, "tet", out=tmp_path / "c", device="cpu")
    assert not (tmp_path / "c").exists()


def test_another_recipe_is_refused_before_any_work(tmp_path):
    compare(TINY, ["tet"], out=tmp_path / "c", device="cpu")
    before = (tmp_path / "c" / "table.md").read_bytes()
    with pytest.raises(QuadspikeError, match=r"epochs 1 -> 2.*choose another --out"):
        compare(TINY.but(epochs=2), ["tet", "stbp-tdbn"], out=tmp_path / "c", device="cpu")
    assert (tmp_path / "c" / "table.md").read_bytes() == before
    assert not (tmp_path / "c" / "stbp-tdbn").exists()


def test_a_method_that_has_changed_is_refused(tmp_path):
    compare(TINY, ["tet"], out=tmp_path / "c", device="cpu")
    path = tmp_path / "c" / "tet" / "seed-0" / "recipe.json"
    content = json.loads(path.read_text())
    content["recipe"]["detach_reset"] = True
    path.write_text(json.dumps(content))
    with pytest.raises(QuadspikeError, match="detach_reset True -> False"):
        compare(TINY, ["tet"], out=tmp_path / "c", device="cpu")


def test_data_that_are_missing_fail_the_comparison_and_no_method(tmp_path):
    recipe = create_recipe("cifar10-resnet8-short", epochs=1)
    with pytest.raises(QuadspikeError, match="nowhere"):
        compare(recipe, ["tet"], out=tmp_path / "c", device="cpu", data_root=tmp_path / "nowhere")
    assert not (tmp_path / "c" / "tet").exists()


def test_torchrun_and_strange_files_are_refused(tmp_path, monkeypatch):
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "letter.txt").write_text("dear")
    with pytest.raises(QuadspikeError, match="no run of quadspike"):
        compare(TINY, ["tet"], out=tmp_path / "c", device="cpu")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(QuadspikeError, match="without torchrun"):
        compare(TINY, ["tet"], out=tmp_path / "d", device="cpu")


def test_a_damaged_outcome_says_what_to_do(tmp_path):
    path = tmp_path / "seed-0.json"
    path.write_text("{}")
    with pytest.raises(QuadspikeError, match="delete it"):
        Outcome.read(path)
    (tmp_path / "c" / "stbp-tdbn").mkdir(parents=True)
    (tmp_path / "c" / "recipe.json").write_text(
        json.dumps({"format": 1, "recipe": TINY.as_dict()}), encoding="utf-8"
    )
    (tmp_path / "c" / "stbp-tdbn" / "seed-0.json").write_text("{")
    watcher = Count()
    with pytest.raises(QuadspikeError, match="delete it"):
        compare(TINY, ["tet", "stbp-tdbn"], out=tmp_path / "c", device="cpu", watcher=watcher)
    assert not watcher.steps  # before any work
    kept = Outcome("tet", 3, accuracy=0.9, energy_flags=("graded",), made_on=("a", "b"))
    kept.write(path)
    assert Outcome.read(path) == kept


def test_the_pace_is_that_of_steps_within_an_epoch(monkeypatch):
    clock = iter([0.0, 1.0, 9.0, 10.0, 12.0])
    monkeypatch.setattr("quadspike.training.pace.time.perf_counter", lambda: next(clock))
    pace = paced(Recipe("tiny", "digits", "cnn", timesteps=4, epochs=2))
    assert pace.step_ms is None
    look(pace, (1, 10), (1, 20), (2, 20), (2, 30), (2, 40))
    assert pace.step_ms == pytest.approx(100.0)


def test_the_pace_is_that_of_epochs_that_train_as_the_last(monkeypatch):
    clock = iter([0.0, 1.0, 10.0, 13.0])
    monkeypatch.setattr("quadspike.training.pace.time.perf_counter", lambda: next(clock))
    late = {"train_timesteps": 1, "full_epochs": 1}
    pace = paced(Recipe("tiny", "digits", "cnn", timesteps=4, epochs=2).but(**late))
    look(pace, (1, 10), (1, 20))
    assert pace.step_ms is None
    look(pace, (2, 10), (2, 20))
    assert pace.step_ms == pytest.approx(300.0)


def paced(recipe):
    pace = Pace()
    pace.begin(Beginning(recipe, 0, "CPU", 1, 0, 0, 0))
    return pace


def look(pace, *moments):
    for epoch, step in moments:
        pace.moment(Moment(epoch, step, 0, 0.0, 0.0, 0.0, 0.0, None))
