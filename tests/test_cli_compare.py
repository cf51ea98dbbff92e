"""`quadspike compare`, end to end on the digits."""

from __future__ import annotations

import csv
import io
import json
import signal
import time

import pytest
from rich.console import Console

from quadspike.cli.board import Board
from quadspike.cli.compare import _show
from quadspike.comparison import Outcome, compare
from quadspike.comparison.grid import Grid
from quadspike.methods import METHODS
from quadspike.recipes import create_recipe
from quadspike.training.evaluate import evaluate
from quadspike.training.observer import Beginning, Moment
from tests.conftest import run_cli
from tests.kill_driver import Accident

THREE = ("compare", "--methods", "qif", "stbp-tdbn", "tet", "--epochs", "1", "--device", "cpu")


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")


def table(folder):
    with (folder / "table.csv").open(encoding="utf-8") as file:
        return {row["method"]: row for row in csv.DictReader(file)}


def test_three_methods_in_one_table(tmp_path, capsys):
    out = tmp_path / "c"
    assert run_cli(*THREE, "--out", str(out)) == 0
    shown = capsys.readouterr().out
    for part in ("1/3 qif seed 0: test accuracy", "STBP-tdBN", "no (a)", str(out)):
        assert part in shown
    rows = table(out)
    assert list(rows) == ["qif", "stbp-tdbn", "tet"]
    for row in rows.values():
        assert float(row["accuracy_percent"]) > 60
        assert 0 < float(row["firing_rate"]) < 1
        assert float(row["energy_mj"]) > 0
        assert int(row["parameters"]) == 94_186
        assert row["memory_gib"] == ""
    assert run_cli(*THREE, "--out", str(out)) == 0
    assert capsys.readouterr().out.count("already finished") == 3


@pytest.mark.parametrize(("width", "columns"), [(30, 2), (40, 3), (60, 4), (200, 5)])
def test_a_narrow_terminal_gets_the_columns_that_fit(width, columns, capsys):
    headings = ("method", "accuracy, %", "energy, mJ", "the paper, %", "like for like")
    row = ("QIF, learned", "96.20", "1.05 (a)", "96.44 ± 0.07", "no (b)")
    grid = Grid("a title", headings, (row,), (("a", "sums"), ("b", "trained otherwise")), ())
    screen = io.StringIO()
    _show(Console(file=screen, force_terminal=True, width=width, no_color=True), grid)
    for number, cell in enumerate(row):
        assert (cell in screen.getvalue()) == (number < columns)
    told = capsys.readouterr().out
    for number, heading in enumerate(headings):
        assert (heading in told) == (number >= columns)
    assert ("(a) sums" in told) == (columns > 2)
    assert ("(b) trained otherwise" in told) == (columns > 4)


def test_every_method_is_listed_with_one_line(capsys):
    assert run_cli("compare", "--list") == 0
    lines = capsys.readouterr().out.splitlines()
    for key, method in METHODS.items():
        assert sum(line.split()[:1] == [key] for line in lines) == 1
        assert any(method.line in line for line in lines)
    assert len(lines) == 1 + len(METHODS)


def test_a_dry_run_estimates_and_leaves_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run_cli(*THREE, "--seeds", "2", "--dry-run") == 0
    shown = capsys.readouterr().out
    assert "94,186" in shown
    assert "44" in shown  # two seeds of 22 steps
    assert "of steps in all" in shown
    assert not list(tmp_path.iterdir())


def test_a_dry_run_counts_what_is_left(tmp_path, capsys):
    common = ("--epochs", "1", "--out", str(tmp_path / "c"), "--device", "cpu", "--methods")
    assert run_cli("compare", "digits-mlp", *common, "tet") == 0
    capsys.readouterr()
    assert run_cli("compare", "digits-mlp", *common, "tet", "--dry-run") == 0
    shown = capsys.readouterr().out
    assert "about 0.0 s of steps" in shown
    assert "1 of 1 runs have come to their end" in shown
    more = ("qif", "--seeds", "2", "--methods", "tet")
    assert run_cli("compare", "digits-mlp", *common, *more, "--dry-run") == 0
    shown = capsys.readouterr().out
    left = {name: runs for name, runs, *_ in map(str.split, shown.splitlines()[1:3])}
    assert left == {"qif": "2", "tet": "1"}
    assert "1 of 4 runs have come to their end" in shown


def test_help_teaches(capsys):
    assert run_cli("compare", "--help") == 0
    shown = capsys.readouterr().out
    for part in ("--methods", "--list", "--dry-run", "quadspike compare cifar10-resnet19"):
        assert part in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("compare", "digits-cn"), "did you mean 'digits-cnn'"),
        (("compare", "--methods", "qiff"), "did you mean 'qif'"),
        (("compare", "--seeds", "0"), "seeds must be a whole number >= 1"),
        ((*THREE, "--device", "cuda:63"), "no device 'cuda:63'"),
    ],
)
def test_mistakes_end_with_one_line_and_exit_code_2(mistaken, arguments, said):
    assert said in mistaken(*arguments)


def test_a_method_that_failed_is_noted_and_ends_with_exit_code_1(tmp_path, capsys):
    common = ("--epochs", "1", "--out", str(tmp_path / "c"), "--device", "cpu", "--methods")
    assert run_cli("compare", "digits-mlp", *common, "tet") == 0
    (tmp_path / "c" / "qif").mkdir()
    Outcome("qif", 0, failure="the loss was lost").write(tmp_path / "c" / "qif" / "seed-0.json")
    assert run_cli("compare", "digits-mlp", *common, "tet", "qif") == 1
    assert "the loss was lost" in capsys.readouterr().out


def test_a_signal_stops_it_and_the_same_command_goes_on(driver, tmp_path):
    command = ("compare", "digits-mlp", *THREE[1:], "--out", str(tmp_path / "c"))
    stopped = driver.run(*command, accident=Accident("step", 30, signal=signal.SIGTERM))
    assert stopped.code == 143, stopped.text
    assert "the same command goes on" in stopped.text
    again = driver.run(*command)
    assert again.code == 0, again.text
    assert again.text.count("already finished") == 1
    assert "stbp-tdbn seed 0: going on after step 8" in again.text
    assert all(row["runs"] == "1" for row in table(tmp_path / "c").values())


def test_a_terminal_gets_bars(tmp_path):
    screen = io.StringIO()
    board = Board(Console(file=screen, force_terminal=True, width=140))
    recipe = create_recipe("digits-mlp", epochs=1, batch_size=256)
    compare(recipe, ["tet"], out=tmp_path / "c", device="cpu", watcher=board)
    board.close()
    for part in ("run 1/1", "tet seed 0 epoch 1/1", "loss", "left", "test accuracy"):
        assert part in screen.getvalue()


def test_the_time_left_is_not_of_what_an_earlier_call_has_made():
    board = Board(Console(file=io.StringIO(), force_terminal=True))
    recipe = create_recipe("digits-mlp", epochs=10)
    board.next_run("one", 1, 2)
    board.begin(Beginning(recipe, 1, "CPU", 1, 1437, steps_per_epoch=10, done=50))
    board.started = time.monotonic() - 10
    board.moment(Moment(8, 5, 75, 1.0, 0.5, 100.0, 1.0, None))  # a quarter of a run in 10 s
    board.close()
    assert board.progress.tasks[0].fields["text"] == "about 50.0 s left"


@pytest.mark.slow
def test_all_methods_on_the_digits_in_ten_minutes(tmp_path):
    start = time.monotonic()
    assert run_cli("compare", "--device", "cpu", "--out", str(tmp_path / "c")) == 0
    rows = table(tmp_path / "c")
    assert list(rows) == list(METHODS)
    assert {key: row["failures"] for key, row in rows.items() if row["failures"]} == {}
    for key, row in rows.items():
        assert float(row["accuracy_percent"]) >= 90, key
        again = evaluate(tmp_path / "c" / key / "seed-0", device="cpu")
        assert 100 * again.fresh.accuracy == float(row["accuracy_percent"]), key
        assert float(row["step_ms"]) > 0
        assert float(row["energy_mj"]) > 0
    assert json.loads((tmp_path / "c" / "comparison.json").read_text())["seeds"] == 1
    assert time.monotonic() - start < 600
