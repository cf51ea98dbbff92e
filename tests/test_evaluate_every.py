"""Runs that are not evaluated after every epoch."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

from quadspike import QuadspikeError
from quadspike.cli.display import Display
from quadspike.models.files import read_tensors
from quadspike.records.metrics import check_epochs, compact, summarise
from quadspike.training import Recipe, Result, train
from quadspike.training.evaluate import evaluate
from tests.watching import Signal

RECIPE = Recipe(
    "rare", "digits", "mlp", epochs=5, batch_size=256, lr=0.05, validation=100, evaluate_every=3
)
JUDGED = {"test_loss", "test_accuracy", "validation_loss", "validation_accuracy", "rates", "window"}


def run(folder: Path, recipe: Recipe = RECIPE, **options: Any) -> Result:
    return train(recipe, out=folder, device="cpu", **options)


def lines(folder: Path) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in (folder / "metrics.jsonl").open()]
    for line in found:
        del line["seconds"], line["images_per_second"]
    return found


def summary_of(folder: Path) -> dict[str, Any]:
    summary: dict[str, Any] = json.loads((folder / "record.json").read_text())["summary"]
    return summary


def test_the_first_and_the_last_epoch_and_every_third(tmp_path: Path) -> None:
    result = run(tmp_path / "run")
    found = lines(tmp_path / "run")
    assert [set(line) >= JUDGED for line in found] == [True, False, True, False, True]
    assert not any(JUDGED & set(found[place]) for place in (1, 3))
    summary = summary_of(tmp_path / "run")
    assert (summary["epochs"], summary["evaluated_epoch"]) == (5, 5)
    assert result.test_accuracy == summary["test_accuracy"] == found[-1]["test_accuracy"]
    judged = [line for line in found if "test_accuracy" in line]
    best = max(judged, key=lambda line: line["validation_accuracy"])
    assert summary["best_epoch"] == best["epoch"]
    for weights, noted in (("last", "test_accuracy"), ("best", "best_test_accuracy")):
        again = evaluate(tmp_path / "run", weights=weights, device="cpu")
        assert again.fresh.accuracy == again.recorded == summary[noted]


def test_looking_less_often_changes_nothing_else(tmp_path: Path) -> None:
    run(tmp_path / "rare")
    run(tmp_path / "often", RECIPE.but(evaluate_every=1))
    rare, often = (read_tensors(tmp_path / name / "last.safetensors") for name in ("rare", "often"))
    assert all(torch.equal(rare[name], often[name]) for name in rare)
    for less, more in zip(lines(tmp_path / "rare"), lines(tmp_path / "often"), strict=True):
        assert less == {name: more[name] for name in less}


@pytest.mark.parametrize("epoch", [1, 2, 4])
def test_a_run_stopped_between_evaluations_goes_on_alike(tmp_path: Path, epoch: int) -> None:
    run(tmp_path / "whole")
    stopped = run(tmp_path / "parts", observers=[Signal(epoch)])
    assert stopped.summary["epochs"] == epoch
    assert stopped.summary["evaluated_epoch"] == (3 if epoch == 4 else 1)
    assert (
        stopped.test_accuracy == lines(tmp_path / "whole")[2 if epoch == 4 else 0]["test_accuracy"]
    )
    assert evaluate(tmp_path / "parts", device="cpu").recorded is None
    finished = run(tmp_path / "parts", resume=True)
    assert lines(tmp_path / "parts") == lines(tmp_path / "whole")
    assert finished.summary["best_epoch"] == summary_of(tmp_path / "whole")["best_epoch"]


def test_a_record_of_it_follows_from_its_epochs(tmp_path: Path) -> None:
    run(tmp_path / "run")
    record = json.loads((tmp_path / "run/record.json").read_text())
    metrics, summary = record["metrics"], record["summary"]
    check_epochs(RECIPE, metrics, summary["seconds"])
    assert summarise(RECIPE, metrics).items() <= summary.items()
    assert [line["epoch"] for line in compact(metrics) if "rates" in line] == [1, 3, 5]
    for every, said in ((4, "epoch 3 was evaluated"), (2, "epoch 2 was not evaluated")):
        with pytest.raises(QuadspikeError, match=said):
            check_epochs(RECIPE.but(evaluate_every=every), metrics, summary["seconds"])


def test_the_layers_are_kept_of_twenty_evaluated_epochs() -> None:
    recipe = RECIPE.but(epochs=400, evaluate_every=5)
    looks = {"rates": {}, "window": {}}
    metrics = [
        {"epoch": n, "lr": 0.1, **(looks if recipe.evaluates(n) else {})} for n in range(1, 401)
    ]
    kept = [line["epoch"] for line in compact(metrics) if "rates" in line]
    assert kept == [1, *range(25, 401, 25)]


def test_what_is_shown(tmp_path: Path) -> None:
    text = StringIO()
    run(tmp_path / "run", observers=[Display(Console(file=text, width=200))])
    shown = [line for line in text.getvalue().splitlines() if line.startswith("epoch ")]
    assert ["  test " in line for line in shown] == [True, False, True, False, True]
    assert ["  held out " in line for line in shown] == [True, False, True, False, True]
    assert all("  train " in line and "images/s" in line for line in shown)
