"""`quadspike sweep`, end to end on the digits."""

from __future__ import annotations

import json

import pytest

from tests.conftest import run_cli

QUICK = ("sweep", "digits-mlp", "--epochs", "1", "--batch-size", "256", "--device", "cpu")


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")


def runs(folder):
    return sorted(path.name for path in folder.iterdir() if path.is_dir())


def test_a_product_and_more_in_one_table(tmp_path, capsys):
    out = tmp_path / "s"
    given = ("--over", "neuron=qif,lif", "timesteps=2", "--over", "eta=0.5,1")
    assert run_cli(*QUICK, *given, "--also", "lr=0.02,clip=null", "--out", str(out)) == 0
    shown = capsys.readouterr().out
    assert "1/5 timesteps-2_neuron-qif_eta-0.5-seed0: test accuracy" in shown
    table = (out / "table.md").read_text()
    assert table in shown
    headings, _, *rows = [line for line in table.splitlines() if line.startswith("| ")]
    assert headings.startswith("| T | neuron | eta | lr | test, % |")
    assert len(rows) == 5
    assert (out / "curves.png").read_bytes().startswith(b"\x89PNG")
    recipe = json.loads((out / "lr-0.02_clip-null-seed0" / "recipe.json").read_text())["recipe"]
    assert (recipe["lr"], recipe["clip"], recipe["timesteps"]) == (0.02, None, 4)
    assert run_cli("evaluate", str(out / "timesteps-2_neuron-lif_eta-1-seed0")) == 0
    capsys.readouterr()
    given = ("--over", "timesteps=2", "eta=0.5,1,2", "neuron=qif,lif")
    assert run_cli(*QUICK, *given, "--also", "lr=0.02,clip=null", "--out", str(out)) == 0
    assert capsys.readouterr().out.count("already finished") == 5
    assert len(runs(out)) == 7


def test_the_two_commands_take_the_same_fields(tmp_path):
    fields = ("--loss", "tet", "--validation", "100", "--detach-reset", "--seed", "3")
    over = ("--over", "window=mean", "--seeds", "2", "--out", str(tmp_path / "s"))
    assert run_cli(*QUICK, *fields, *over) == 0
    assert runs(tmp_path / "s") == ["window-mean-seed3", "window-mean-seed4"]
    alone = ("--window", "mean", "--out", str(tmp_path / "alone"))
    assert run_cli("train", *QUICK[1:], *fields, *alone) == 0
    first, second = (
        (folder / "last.safetensors").read_bytes()
        for folder in (tmp_path / "alone", tmp_path / "s" / "window-mean-seed3")
    )
    assert first == second


def test_a_dry_run_counts_what_is_left_and_leaves_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    given = ("--over", "window=mean,threshold", "--seeds", "2")
    assert run_cli(*QUICK, *given, "--dry-run") == 0
    shown = capsys.readouterr().out
    assert not list(tmp_path.iterdir())
    for name in ("window-mean", "window-threshold"):
        (row,) = [line.split() for line in shown.splitlines() if name in line]
        assert row[1:4] == ["2", "26,378", "10"]  # two seeds of five steps
    assert "of steps in all" in shown
    assert run_cli(*QUICK, "--over", "window=mean") == 0
    assert runs(tmp_path / "runs" / "sweep-digits-mlp") == ["window-mean-seed0"]
    capsys.readouterr()
    assert run_cli(*QUICK, *given, "--dry-run") == 0
    shown = capsys.readouterr().out
    (row,) = [line.split() for line in shown.splitlines() if "window-mean" in line]
    assert row[1] == "1"
    assert "1 of 4 runs have come to their end" in shown


def test_help_teaches(capsys):
    for arguments in (("sweep",), ("sweep", "--help")):
        assert run_cli(*arguments) == 0
        shown = capsys.readouterr().out
        for part in ("--over window=threshold,mean eta=0.5,1", "--also", "digits-mlp", "table.md"):
            assert part in shown
    assert run_cli("sweep", "digits-mlp", "--help") == 0
    shown = capsys.readouterr().out
    for part in ("--over", "--also", "--seeds", "--tet-lambda", "--dry-run"):
        assert part in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (QUICK, "something to vary"),
        ((*QUICK, "--over", "window"), "given as NAME=VALUE, got 'window'"),
        ((*QUICK, "--over", "eta=1,"), "eta must be a number > 0, got ''"),
        ((*QUICK, "--over", "eta=1", "--seeds", "0"), "seeds must be a whole number >= 1"),
        ((*QUICK, "--over", "eta=1", "--stop-after", "0"), "stop_after must be more than 0"),
    ],
)
def test_mistakes_end_with_one_line_and_exit_code_2(mistaken, arguments, said):
    assert said in mistaken(*arguments)


def test_time_that_is_up_is_exit_code_75(tmp_path, capsys):
    given = ("--epochs", "200", "--over", "window=mean,threshold", "--stop-after", "0.01")
    assert run_cli(*QUICK, *given, "--out", str(tmp_path / "s")) == 75
    assert "its time was up: the same command goes on" in capsys.readouterr().out
    assert "Not finished" in (tmp_path / "s" / "table.md").read_text()
