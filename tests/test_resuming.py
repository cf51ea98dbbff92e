"""Runs that were stopped, killed or ended, and what a later call makes of them."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from quadspike import QuadspikeError
from quadspike.data.split import Split
from quadspike.training import Recipe, start, train
from quadspike.training.checkpoint import load_checkpoint
from quadspike.training.compilation import Kernels, counts
from quadspike.training.evaluate import evaluate
from quadspike.training.judge import Judge
from quadspike.training.loop import OTHER_SOURCE
from tests.record_cases import tiny
from tests.watching import Signal


def run(folder: Path, recipe: Recipe, **options: Any) -> Any:
    return train(recipe, out=folder, device="cpu", **options)


def test_a_stopped_run_says_so_and_its_time_goes_on(tmp_path: Path) -> None:
    recipe = tiny(epochs=3)
    stopped = run(tmp_path / "run", recipe, stop_after=1e-6)
    assert (stopped.status, stopped.exit_code) == ("stopped", 75)
    record = json.loads((tmp_path / "run/record.json").read_text())
    assert record["summary"]["status"] == "stopped"
    assert record["summary"]["steps_beyond"] == 1
    assert evaluate(tmp_path / "run", device="cpu").recorded is None
    finished = run(tmp_path / "run", recipe, resume=True)
    assert finished.status == "finished"
    assert finished.summary["seconds"] > stopped.summary["seconds"]
    assert evaluate(tmp_path / "run", device="cpu").recorded == finished.test_accuracy


def test_all_of_the_time_is_accounted_for_in_every_part(tmp_path: Path, monkeypatch) -> None:
    judge = Judge.__call__

    def slow(*given: Any) -> Any:
        time.sleep(0.2)
        return judge(*given)

    monkeypatch.setattr(Judge, "__call__", slow)
    recipe = tiny(epochs=3)
    ends = [
        run(tmp_path / "run", recipe, resume=resume, stop_after=None if resume else 1e-6).summary
        for resume in (False, True, True)  # stopped, finished, and nothing left
    ]
    for end in ends:
        assert sum(end["seconds_spent_on"].values()) == pytest.approx(end["seconds"], abs=0.01)
    assert "evaluation" not in ends[0]["seconds_spent_on"]
    stopped, finished, again = (end["seconds_spent_on"] for end in ends)
    assert 0.6 <= finished["evaluation"] < 2.0
    assert finished["data"] > stopped["data"]
    assert again == finished


def test_what_comes_before_the_steps_is_none_of_them(tmp_path: Path, monkeypatch) -> None:
    """Torch alone may load for seconds where its switches are set."""

    @contextmanager
    def slow(*given: Any) -> Any:
        time.sleep(0.5)
        yield

    monkeypatch.setattr("quadspike.training.start.joined", slow)
    summary = run(tmp_path / "run", tiny(epochs=1)).summary
    parts = summary["seconds_spent_on"]
    assert parts["start"] >= 0.5
    assert 0 < parts["steps"] <= summary["seconds"] - 0.5


def test_steps_that_were_not_trained_are_refused_by_what_needs_them(tmp_path: Path) -> None:
    run(tmp_path / "run", tiny(norm="tebn"))
    with pytest.raises(QuadspikeError, match="tebn learns a factor for each step"):
        evaluate(tmp_path / "run", device="cpu", timesteps=4)
    assert evaluate(tmp_path / "run", device="cpu", timesteps=2).recorded is not None


def test_every_part_notes_what_it_was_made_with_when_it_began(tmp_path: Path, monkeypatch) -> None:
    source = iter("abc")
    monkeypatch.setattr(
        "quadspike.training.start.environment", lambda *given: {"source": next(source)}
    )
    for resume in (False, True, True):  # stopped, finished, and nothing left
        run(tmp_path / "run", tiny(epochs=3), resume=resume, stop_after=None if resume else 1e-6)
    record = json.loads((tmp_path / "run/record.json").read_text())
    assert record["environment"] == {"source": "b"}
    assert record["earlier_environments"] == [{"source": "a"}]
    assert record["notes"] == [OTHER_SOURCE]


def test_parts_of_one_source_are_not_warned_of(tmp_path: Path) -> None:
    for resume in (False, True):
        run(tmp_path / "run", tiny(epochs=3), resume=resume, stop_after=None if resume else 1e-6)
    assert json.loads((tmp_path / "run/record.json").read_text())["notes"] == []


def test_code_that_changes_between_two_runs_of_a_process_is_not_what_ran(
    tmp_path: Path, monkeypatch
) -> None:
    run(tmp_path / "first", tiny(epochs=1))
    monkeypatch.setattr("quadspike.training.record.fingerprint", lambda files: "of another code")
    monkeypatch.setattr("quadspike.training.record.subprocess", None)  # nor is git asked again
    run(tmp_path / "second", tiny(epochs=1))
    first, second = (
        json.loads((tmp_path / name / "record.json").read_text())["environment"]
        for name in ("first", "second")
    )
    assert first == second


def test_whatever_its_name_a_run_lies_among_the_runs() -> None:
    assert start.default_folder(tiny(name="../../elsewhere")).parent == Path("runs")


def test_an_ended_run_without_its_checkpoint_is_left_alone(tmp_path: Path) -> None:
    run(tmp_path / "run", tiny())
    (tmp_path / "run/checkpoint.safetensors").unlink()
    before = {p.name: p.read_bytes() for p in (tmp_path / "run").iterdir() if p.is_file()}
    with pytest.raises(QuadspikeError, match=r"its checkpoint\.safetensors is gone"):
        run(tmp_path / "run", tiny(), resume=True)
    assert before == {p.name: p.read_bytes() for p in (tmp_path / "run").iterdir() if p.is_file()}


def test_a_run_that_ended_while_another_waited_to_begin_is_left_alone(
    tmp_path: Path, monkeypatch
) -> None:
    check = start.check_network

    def while_it_checks(*given: Any) -> None:
        monkeypatch.setattr(start, "check_network", check)
        run(tmp_path / "run", tiny())  # by a process that was called first
        check(*given)

    monkeypatch.setattr(start, "check_network", while_it_checks)
    with pytest.raises(QuadspikeError, match="another process has trained in"):
        run(tmp_path / "run", tiny(), resume=True)
    assert json.loads((tmp_path / "run/record.json").read_text())["summary"]["epochs"] == 2
    assert evaluate(tmp_path / "run", device="cpu").recorded is not None


def test_a_run_that_begins_anew_has_none_of_the_epochs_of_before(tmp_path: Path) -> None:
    run(tmp_path / "run", tiny())
    for name in ("checkpoint.safetensors", "record.json"):  # as a kill before the first save
        (tmp_path / "run" / name).unlink()
    run(tmp_path / "run", tiny(), resume=True, stop_after=1e-6)
    assert not (tmp_path / "run/metrics.jsonl").exists()


def test_the_speed_of_a_part_without_steps_is_that_of_the_one_before(tmp_path: Path) -> None:
    recipe = tiny(epochs=2)
    ended = run(tmp_path / "run", recipe, observers=[Signal(2, 5)])  # in the last evaluation
    assert ended.exit_code
    found = run(tmp_path / "run", recipe, resume=True)
    assert found.summary["images_per_second"] > 0


def test_a_surrogate_that_evolves_goes_on_where_it_was(tmp_path: Path) -> None:
    recipe = tiny(epochs=3, surrogate="evolving")
    run(tmp_path / "whole", recipe)
    resume = False
    while run(tmp_path / "run", recipe, observers=[Signal(step=5)], resume=resume).exit_code:
        resume = True
    run(tmp_path / "run", recipe, resume=True)  # nothing is left, and the record is written anew
    whole, parts = (
        json.loads((tmp_path / name / "record.json").read_text()) for name in ("whole", "run")
    )
    assert whole["layers"] == parts["layers"]
    seen = [[line["window"] for line in record["metrics"]] for record in (whole, parts)]
    assert seen[0] == seen[1]


def test_the_kernels_of_all_parts_are_counted(tmp_path: Path, monkeypatch) -> None:
    parts = iter("abc")

    @contextmanager
    def watched(device):
        part = next(parts)
        yield Kernels([f"{part}{n}" for n in range(3)], [f"{part}3"], seconds=0.5)

    monkeypatch.setattr("quadspike.training.start.watched", watched)
    for resume in (False, True, True):  # stopped, finished, and nothing left
        run(tmp_path / "run", tiny(epochs=3), resume=resume, stop_after=None if resume else 1e-6)
    found = load_checkpoint(tmp_path / "run/checkpoint.safetensors").progress.kernels
    assert counts(found) == {"compiled": 6, "cached": 2, "seconds": 1.0}


def test_weights_from_within_an_epoch_are_not_compared_with_its_start(tmp_path: Path) -> None:
    stopped = run(tmp_path / "run", tiny(), observers=[Signal()])
    assert (stopped.exit_code, stopped.summary["steps_beyond"]) == (143, 1)
    assert stopped.test_accuracy is not None  # of the epoch before
    assert evaluate(tmp_path / "run", device="cpu").recorded is None
    best = evaluate(tmp_path / "run", weights="best", device="cpu")
    assert best.recorded == best.fresh.accuracy


def test_resuming_takes_the_old_end_away_and_refuses_other_data(tmp_path: Path) -> None:
    images = torch.randint(0, 256, (64, 1, 8, 8), dtype=torch.uint8)
    split = Split("mine", images, torch.arange(64) % 10, tuple("0123456789"))
    recipe = tiny(dataset="own", batch_size=16)
    run(tmp_path / "run", recipe, data=(split, split), stop_after=1e-6)
    fewer = split.subset(torch.arange(48))
    with pytest.raises(QuadspikeError, match="64 samples"):
        run(tmp_path / "run", recipe, data=(fewer, split), resume=True)
