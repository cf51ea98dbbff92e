"""The table of a group: what is common, what differs, seeds together."""

from __future__ import annotations

import json
from statistics import fmean, stdev

import pytest

from quadspike.records import Store, curves
from quadspike.records.groups import by_setting, differing, place, read_group, read_groups
from quadspike.records.tables import table
from quadspike.written import NOTHING, significant
from tests.conftest import run_cli
from tests.record_cases import make_repository, make_run, put

SHORT = {"recipe": "cifar10-resnet19-short", "validation": 5000}


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


def sentence(text: str) -> str:
    return text.splitlines()[0]


def rows(text: str) -> list[list[str]]:
    """The headings and the rows."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [cells[0], *cells[2:]]


def test_a_column_for_what_differs_and_a_row_for_the_seeds(store):
    accuracies = (0.910, 0.914)
    for seed, accuracy in enumerate(accuracies):
        put(store, f"study/a{seed}", 0.5, accuracy, seed=seed, lr=0.05, eta=0.5, **SHORT)
    put(store, "study/b", 0.5, 0.93, seed=0, lr=0.05, detach_reset=True, **SHORT)
    put(store, "other/c", 0.5, 0.99, lr=0.4, **SHORT)
    text = table(store, "study")
    assert sentence(text) == (
        "Every run is `cifar10-resnet19-short` with lr 0.05, 5,000 training images held out, but "
        "for what its row says; 30 epochs, T = 2, on NVIDIA H200."
    )
    headings, first, second = rows(text)
    assert headings == [
        "detach reset",
        "eta",
        "held-out, %",
        "test, %",
        "training loss",
        "firing rate, %",
        "energy an image",
        "seeds",
    ]
    percents = [100 * accuracy for accuracy in accuracies]
    mean, spread, loss = fmean(percents), stdev(percents), 2 - 2 * fmean(accuracies)
    results = [f"{mean + 1:.2f} ± {spread:.2f}", f"{mean:.2f} ± {spread:.2f}", f"{loss:.3f}"]
    assert first == ["no", "0.5", *results, "12.3", "0.410\u00a0mJ", "2"]
    assert second == ["yes", "own", "**94.00**", "93.00", "0.140", "12.3", "0.410\u00a0mJ", "1"]
    assert text.count("\n\n") == 2  # one sentence, one table, one remark


def test_what_differs_is_not_said_to_be_shared(store):
    for steps, neuron, device in ((4, "lif", "NVIDIA H200"), (2, "qif", "CPU, 1 thread")):
        put(store, f"study/{neuron}", 0.9, timesteps=steps, neuron=neuron, device=device)
    text = table(store, "study")
    assert sentence(text) == (
        "Every run is `cifar10-resnet19`, but for what its row says; 400 epochs."
    )
    headings, *found = rows(text)
    assert headings[:4] == ["T", "neuron", "device", "test, %"]
    assert [row[:3] for row in found] == [
        ["2", "QIF", "CPU, 1 thread"],
        ["4", "LIF", "NVIDIA H200"],
    ]
    assert "held-out" not in text  # nobody held out any


def test_rows_are_ordered_by_numbers_as_numbers(store):
    for lr in (0.1, 0.025, 0.2, 1.0, 0.0125):
        put(store, f"study/{lr}", 0.9, lr=lr, **SHORT)
    assert [row[0] for row in rows(table(store, "study"))[1:]] == [
        "0.0125", "0.025", "0.1", "0.2", "1",
    ]  # fmt: skip


def test_windows_are_ordered_by_where_they_lie(store):
    for window in ("threshold", "mean", 0.25, "stationary", -1.0):
        put(store, f"study/at{window}", 0.9, window=window)
    found = [row[0] for row in rows(table(store, "study"))[1:]]
    assert found == ["-1", "stationary", "mean", "0.25", "threshold"]
    centres = [place(runs[0], "window") for runs in by_setting(read_group(store, "study"))]
    assert centres == pytest.approx([-1, 0.046752, 0.0625, 0.25, 0.5], abs=1e-5)


def test_only_numbers_and_windows_have_a_place(store):
    put(store, "study/mean", 0.9, window="mean", neuron="lif")
    (record,) = read_group(store, "study")
    found = {field: place(record, field) for field in ("window", "lr", "residual", "detach_reset")}
    assert found == {"window": 0, "lr": 0.1, "residual": None, "detach_reset": None}


def test_a_name_and_how_often_it_is_judged_are_no_setting_and_a_repeated_seed_no_second(store):
    put(store, "study/a", 0.90, **SHORT)
    put(store, "study/b", 0.92, name="mine", evaluate_every=5, **SHORT)
    assert differing(read_group(store, "study")) == []
    headings, row = rows(table(store, "study"))
    assert headings[0] == "held-out, %"
    assert row[0] == "92.00 ± 1.41"  # alone, so nothing to choose
    assert row[-1] == "2 runs of 1"


def test_a_run_in_two_groups_is_read_once(store):
    put(store, "one/a", 0.90)
    put(store, "two/same", 0.90)
    put(store, "two/other", 0.91)
    assert [run.name for run in read_groups(store, ["one", "two"])] == ["one/a", "two/other"]


def test_a_run_that_was_trained_has_all_of_it(tmp_path):
    records = make_repository(tmp_path / "repository") / "records"
    run = make_run(tmp_path / "run", validation=100)
    added = run_cli("records", "add", str(run), "--name", "study/a", "--records", str(records))
    assert added == 0
    last = json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])
    _, row = rows(table(Store(records), "study"))
    held, test = last["validation_accuracy"], last["test_accuracy"]
    assert row[:3] == [f"{100 * held:.2f}", f"{100 * test:.2f}", significant(last["train_loss"])]
    assert NOTHING not in row  # firing rate and energy
    (series,) = curves(read_groups(Store(records), ["study"])).series
    assert series.mean()[-1] == (2, 100 * held)


def test_weights_it_started_from_are_a_setting(store):
    first = {"init_from": {"sha256": "0123456789abcdef" * 4}}
    for group in ("", "study/"):
        put(store, f"{group}new", 0.90, recipe="digits-mlp")
        put(store, f"{group}tuned", 0.94, recipe="digits-mlp", seed=1, content=first)
    headings, fresh, tuned = rows(table(store, "study"))
    assert (headings[0], fresh[0], tuned[0]) == ("init from", "new weights", "weights 01234567")
    names = [row[0] for row in rows(table(store))[1:]]
    assert names == ["digits-mlp, init from weights 01234567", "digits-mlp"]
    put(store, "other/tuned", 0.94, recipe="digits-mlp", content=first)
    assert "`digits-mlp` with init from weights 01234567;" in sentence(table(store, "other"))


def test_a_constant_that_is_given_as_it_is_anyway_makes_no_other_setting(store):
    put(store, "study/a", 0.90)
    put(store, "study/b", 0.92, seed=1, neuron_constants={"u_th": 0.5})
    put(store, "study/c", 0.94, neuron_constants={"u_th": 0.6})
    headings, *found = rows(table(store, "study"))
    assert headings[0] == "u_th"
    assert [(row[0], row[-1]) for row in found] == [("0.5", "2"), ("0.6", "1")]
    assert differing(read_group(store, "study")[:2]) == []


def test_what_changes_nothing_is_no_setting(store):
    """The angle of a step is Muon's alone, and TET's weight TET's."""
    put(store, "study/a", 0.90, seed=0, turn=0.05, tet_lambda=0.1, **SHORT)
    put(store, "study/b", 0.91, seed=1, turn=0.01, **SHORT)
    put(store, "study/c", 0.92, optimizer="muon", turn=0.05, **SHORT)
    headings, muon, sgd = rows(table(store, "study"))
    assert headings[:2] == ["optimizer", "turn"]
    assert "tet lambda" not in headings
    assert (muon[:2], muon[-1]) == (["muon", "0.05"], "1")
    assert (sgd[:2], sgd[-1]) == (["sgd", NOTHING], "2")
