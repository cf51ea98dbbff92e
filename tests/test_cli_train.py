"""Training from the command line, end to end on the digits."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from quadspike.cli.asking import ask
from quadspike.cli.display import Display
from quadspike.cli.train import USAGE, USUAL
from quadspike.training import Recipe, train
from quadspike.training.observer import Beginning
from quadspike.written import millijoule, searchable
from tests.conftest import TRAIN, run_cli
from tests.run_folders import make_run

QUICK = ("train", "digits-mlp", "--epochs", "2", "--batch-size", "256", "--device", "cpu")


def test_every_field_can_be_overridden(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    options = ("--neuron", "lif", "--timesteps", "3", "--loss", "tet", "--tet-lambda", "0.1")
    more = ("--clip", "1.0", "--detach-reset", "--seed", "5", "--validation", "100")
    assert run_cli(*QUICK, *options, *more, "--out", str(out)) == 0
    recipe = json.loads((out / "recipe.json").read_text())["recipe"]
    assert (recipe["neuron"], recipe["timesteps"], recipe["loss"]) == ("lif", 3, "tet")
    assert (recipe["tet_lambda"], recipe["clip"], recipe["detach_reset"]) == (0.1, 1.0, True)
    shown = capsys.readouterr().out
    assert "epoch 2/2" in shown
    assert "held out" in shown
    assert "test accuracy" in shown
    spent = json.loads((out / "record.json").read_text())["summary"]["energy_mj"]
    assert f"one inference costs {searchable(millijoule(spent))} (" in shown
    assert str(out) in shown


def test_evaluate_repeats_the_figure(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    noted = json.loads((finished / "record.json").read_text())["summary"]["test_accuracy"]
    assert run_cli("evaluate", str(finished), "--device", "cpu") == 0
    assert f"test accuracy {noted:.2%} (the run noted {noted:.2%})" in capsys.readouterr().out


def test_a_finished_run_resumed_says_the_same(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("last.safetensors", "record.json", "metrics.jsonl")
    before = {name: (run / name).read_bytes() for name in names}
    assert run_cli(*TRAIN, "--out", str(run), "--resume") == 0
    assert "test accuracy" in capsys.readouterr().out
    assert {name: (run / name).read_bytes() for name in names} == before


def test_a_dry_run_leaves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    assert run_cli(*QUICK, "--dry-run", "--out", str(out)) == 0
    shown = capsys.readouterr().out
    for part in ("timesteps", "parameters", "steps", "GiB"):
        assert part in shown
    assert not out.exists()


def test_the_recipes_are_listed_and_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli("train") == 0
    assert "cifar10-resnet19" in capsys.readouterr().out
    assert run_cli("train", "cifar10-resnet19", "--help") == 0
    assert "--tet-lambda" in capsys.readouterr().out


@pytest.mark.parametrize("recipe", ["cifar10-speedrun", "cifar10-resnet19"])
@pytest.mark.parametrize("on", [True, False])
def test_a_switch_goes_both_ways_whatever_the_recipe_says(recipe: str, on: bool) -> None:
    switch = "--autoaugment" if on else "--no-autoaugment"
    asked = ask("train", [recipe, switch], USUAL, USAGE, "")
    assert asked is not None
    assert asked.recipe.autoaugment is on


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((*QUICK, "--epoch", "3"), "--epochs"),
        ((*QUICK, *("--neuron-constants", "a=0.3") * 2), "give --neuron-constants once"),
        (("train", "cifar10-resnet19", "--data", "/nowhere"), "/nowhere"),
        (("evaluate", "/nowhere"), "no run"),
        (("report", "/nowhere", "-o", "page.pdf"), "a name with .html"),
        ((*QUICK, "--checkpoint-minutes", "nan"), "checkpoint_minutes must be at least 0"),
        (("train", "digits-mlp", "--device", "meta"), "cpu or cuda"),
        (("train", "cifar10-resnet8-short", "--dry-run", "--batch-size", "60000"), "larger than"),
    ],
)
def test_one_clear_message_before_any_work(
    arguments: tuple[str, ...],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_cli(*arguments) == 2
    shown = " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert said in shown
    assert not list(tmp_path.iterdir())


def test_a_terminal_gets_a_live_line(tmp_path: Path) -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=140)
    recipe = Recipe("tiny", "digits", "mlp", epochs=2, batch_size=256)
    train(recipe, out=tmp_path / "run", device="cpu", observers=[Display(console)])
    shown = screen.getvalue()
    for part in ("step", "images/s", "left", "epoch"):
        assert part in shown
    assert "\x1b[" in shown


def test_one_epoch_of_one_step_is_not_said_to_be_several() -> None:
    text = io.StringIO()
    recipe = Recipe("tiny", "digits", "mlp", epochs=1, batch_size=1000)
    Display(Console(file=text)).begin(Beginning(recipe, 1, "CPU", 1, 1437, 1, 0))
    assert "batch 1000, 1 epoch of 1 step\n" in text.getvalue()


def test_a_narrow_terminal_s_live_line_keeps_where_it_stands(tmp_path: Path) -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, no_color=True, width=60)
    recipe = Recipe("tiny", "digits", "mlp", epochs=1, batch_size=256)
    train(recipe, out=tmp_path / "run", device="cpu", observers=[Display(console)])
    lines = [line for line in re.split(r"[\r\n]", screen.getvalue()) if "epoch" in line]
    live = [line for line in lines if "━" in line]
    assert live
    for line in live:
        assert re.search(r"epoch 1/1 step \d/5 .*━.* loss [\d.]+  [\d.]+ s left", line)


def test_names_with_brackets_and_colons_are_shown_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "a[/b]:100:seed"
    assert run_cli(*QUICK, "--name", "my[x]:100:", "--dry-run") == 0
    assert "my[x]:100:" in capsys.readouterr().out
    assert run_cli(*QUICK, "--name", "my[x]:100:", "--out", str(out)) == 0
    shown = capsys.readouterr().out
    assert "my[x]:100:" in shown
    assert f"quadspike report '{out}'" in shown  # as a shell wants it
    assert run_cli("evaluate", str(out)) == 0
    assert str(out) in capsys.readouterr().out


def test_an_interrupted_quickstart_ends_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = f"quickstart --out {tmp_path / 'q'} --seeds 1 --epochs 1"
    with monkeypatch.context() as patch:
        patch.setattr("quadspike.training.stop.Stop.code", 130)
        assert run_cli(*command.split()) == 130
    shown = capsys.readouterr().out
    assert "stopped because SIGINT arrived" in shown
    assert f"go on with quadspike {command}" in shown
    monkeypatch.setenv("FORCE_COLOR", "1")  # to rich, that it is a terminal
    monkeypatch.setenv("COLUMNS", "100")
    assert run_cli(*command.split()) == 0
    shown = capsys.readouterr().out
    bars = ("run 1/2", "qif-seed0 epoch 1/1", "run 2/2", "lif-seed0 epoch 1/1", "left")
    for part in (*bars, "lif-seed0: test accuracy"):
        assert part in shown
    assert "±" not in shown
    record = json.loads((tmp_path / "q" / "lif-seed0" / "record.json").read_text())
    assert searchable(millijoule(record["summary"]["energy_mj"])) in shown


def test_the_quickstart_says_which_seeds_its_table_and_its_page_are_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def trained(recipe: Recipe, out: Path, **_: object) -> SimpleNamespace:
        folder = make_run(out, neuron=recipe.neuron, seed=recipe.seed)
        summary = json.loads((folder / "record.json").read_text())["summary"]
        return SimpleNamespace(exit_code=0, folder=folder, summary=summary)

    monkeypatch.setattr("quadspike.training.train", trained)
    for seeds, table in ((2, "means of 2 seeds"), (1, "one seed")):
        assert run_cli("quickstart", "--out", str(tmp_path), "--seeds", str(seeds)) == 0
        shown = capsys.readouterr().out
        assert table in shown
        assert "The report shows seed 0 of each neuron." in shown
        page = (tmp_path / "report.html").read_text()
        assert "lif-seed0" in page
        assert "lif-seed1" not in page


def test_a_run_stopped_in_its_first_epoch_can_be_evaluated_and_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    assert run_cli(*QUICK, "--out", str(out), "--stop-after", "1e-6") == 75
    assert run_cli("evaluate", str(out)) == 0
    assert capsys.readouterr().out.endswith("; the run was stopped in epoch 1 of 2\n")
    assert run_cli("report", str(out), "-o", str(tmp_path / "page.html")) == 0


@pytest.mark.slow
def test_the_quickstart_s_recipe_reaches_its_accuracy(tmp_path: Path) -> None:
    accuracies = []
    for seed in range(3):
        out = tmp_path / f"seed{seed}"
        arguments = ("train", "digits-cnn", "--seed", str(seed), "--device", "cpu")
        assert run_cli(*arguments, "--out", str(out)) == 0
        summary = json.loads((out / "record.json").read_text())["summary"]
        accuracies.append(summary["test_accuracy"])
    assert sum(accuracies) / 3 >= 0.975, accuracies
