from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from quadspike import __version__, create_model, list_models, save_model
from tests.conftest import TRAIN, calibrate, run_cli


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")


@pytest.fixture
def saved(tmp_path):
    """A small model and a batch of inputs, as files."""
    x = torch.randn(16, 1, 8, 8)
    model = calibrate(create_model("cnn", in_channels=1, timesteps=3, seed=0), x)
    np.save(tmp_path / "x.npy", x.numpy())
    return model, x, save_model(model, tmp_path / "model.safetensors"), tmp_path / "x.npy"


def test_the_installed_command_and_the_module_are_the_same_door():
    done = subprocess.run(
        [sys.executable, "-m", "quadspike", "models"], capture_output=True, text=True, check=True
    )
    assert all(name in done.stdout for name in list_models())


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no file here that is always full")
@pytest.mark.parametrize("command", ["--version", "models"])
def test_output_onto_a_full_disk_ends_with_one_line(command):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "quadspike", command],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.startswith("quadspike: cannot write what it says: No space left")
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no file here that is always full")
def test_a_run_goes_on_where_what_it_says_cannot_be_written(tmp_path):
    out = tmp_path / "run"
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "quadspike", *TRAIN, "--out", str(out)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("No space left on device; the work goes on") == 1
    assert json.loads((out / "record.json").read_text())["summary"]["status"] == "finished"


def test_the_version_is_the_package_s(capsys):
    assert run_cli("--version") == 0
    assert capsys.readouterr().out == f"quadspike {__version__}\n"


@pytest.mark.parametrize("command", ["models", "--help"])
def test_a_reader_that_goes_away_leaves_no_traceback(command):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "quadspike", command], stdout=write, stderr=subprocess.PIPE
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (1, b"")


def test_a_command_whose_output_nobody_wants_ends_well():
    closed = f"{sys.executable} -m quadspike models >&-"
    done = subprocess.run(["sh", "-c", closed], stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    "command",
    ["report", "layers", "energy", "records add", "records table --records", "data verify --data"],
)
def test_a_place_that_the_system_refuses_is_named(command, capsys):
    """Here for the length of its name; a folder without rights ends alike, but not for root."""
    place = "x" * 300
    assert run_cli(*command.split(), place) == 2
    assert capsys.readouterr().err.startswith(f"quadspike: cannot use {place}")


@pytest.mark.parametrize("group", [(), ("data",), ("records",)])
def test_a_list_of_commands_has_a_sentence_for_each(group, capsys):
    assert run_cli(*group, "--help") == 0
    shown = capsys.readouterr().out
    assert "•" in shown
    assert "quadspike " not in shown.partition("\n")[2]  # examples are in each command's own help


@pytest.mark.parametrize("command", ["recipes", "data list", "energy --paper"])
def test_a_narrow_terminal_loses_nothing(command, monkeypatch, capsys):
    shown = []
    for columns in ("60", "100"):
        monkeypatch.setenv("COLUMNS", columns)
        assert run_cli(*command.split()) == 0
        shown.append(capsys.readouterr().out)
    narrow, wide = ("".join(sorted("".join(text.split()))).replace("─", "") for text in shown)
    assert narrow == wide


def test_energy_of_the_paper_s_network(capsys):
    assert run_cli("energy", "resnet19", "--dataset", "cifar10", "--timesteps", "2") == 0
    out = capsys.readouterr().out
    assert "implied by the paper" in out
    assert "4,981,248" in out
    assert "2,214,726,144" in out


def test_brackets_in_a_path_are_shown_as_they_are(capsys, saved):
    folder = saved[2].parent / "mine [old]"
    folder.mkdir()
    weights = saved[2].rename(folder / "model.safetensors")
    assert run_cli("energy", "--weights", str(weights)) == 0
    assert "mine [old]/model" in capsys.readouterr().out
    assert run_cli("data", "list", "--data-root", str(folder)) == 0
    assert "mine [old]" in capsys.readouterr().out
    assert run_cli("data", "verify", "cifar10", "--data", str(folder)) == 1
    assert "mine [old]" in capsys.readouterr().out


def test_energy_at_a_stated_and_at_an_untrained_rate(capsys):
    assert run_cli("energy", "cnn", "--dataset", "digits", "--rate", "0.12") == 0
    assert "0.12 as stated" in capsys.readouterr().out
    assert run_cli("energy", "cnn", "--dataset", "digits") == 0
    assert "untrained layer" in capsys.readouterr().out


def test_a_small_network_s_layers_have_energies_that_can_be_read(capsys):
    assert run_cli("energy", "mlp", "--dataset", "digits") == 0
    out = capsys.readouterr().out
    assert " nJ" in out
    assert "<0.01" not in out


def test_energy_measured_on_saved_weights(capsys, saved):
    model, x, weights, inputs = saved
    arguments = ["--weights", str(weights), "--inputs", str(inputs), "--dataset", "digits"]
    assert run_cli("energy", *arguments) == 0
    out = capsys.readouterr().out
    _, seen = model(x, taps="rate")
    assert f"{seen['conv1.soma']['rate'].mean().item():.4f}" in out
    assert "exact operations" in out
    assert "T = 3" in out


def test_weights_for_recordings_run_their_first_synapse_at_every_step(capsys, tmp_path):
    weights, inputs = tmp_path / "events.safetensors", tmp_path / "clips.npy"
    save_model(create_model("cnn", in_channels=2, image_size=8, timesteps=3), weights)
    np.save(inputs, np.zeros((3, 4, 2, 8, 8), dtype=np.float32))
    for options in (["--rate", "0.1"], ["--inputs", str(inputs)]):
        assert run_cli("energy", "--weights", str(weights), *options) == 0
        out = capsys.readouterr().out
        assert "recordings of (2, 8, 8), T = 3" in out
        assert "runs once for all steps" not in out


def test_the_model_s_name_may_stand_beside_its_weights(capsys, saved):
    weights = str(saved[2])
    assert run_cli("energy", "cnn", "--weights", weights) == 0
    assert "images of (1, 8, 8), T = 3" in capsys.readouterr().out
    for wrong in (["mlp"], ["--neuron", "lif"], ["--residual", "sum-then-fire"]):
        assert run_cli("energy", *wrong, "--weights", weights) == 2
        assert "leave that out" in capsys.readouterr().err


def test_measuring_untrained_weights_is_said(capsys, saved):
    assert run_cli("energy", "cnn", "--dataset", "digits", "--inputs", str(saved[3])) == 0
    assert "UNTRAINED" in capsys.readouterr().out


def test_energy_beside_the_paper(capsys):
    assert run_cli("energy", "--paper") == 0
    out = capsys.readouterr().out
    assert "13 of the 24 figures checked agree" in out
    assert "Contradicts the paper's own rule" in out


@pytest.mark.parametrize("given", [[], ["0"], ["0", "a"]])
def test_resting_without_its_two_numbers_is_refused_in_plain_words(given, capsys):
    assert run_cli("figures", "out", "--resting", *given) == 2
    said = capsys.readouterr().err
    assert "Expected 2 values" in said or "'a'" in said
    assert "[bold]" not in said


@pytest.mark.parametrize("given", ["--u2 0.3", "--resting 0.1 5.0 --u-th 0.6"])
def test_figures_of_other_parameters(given, capsys, tmp_path):
    chosen = ["--formats", "png", "--only", "recurrence", *given.split()]
    assert run_cli("figures", str(tmp_path / "out"), *chosen) == 0
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["recurrence.png"]
    assert "recurrence.png" in capsys.readouterr().out


@pytest.mark.parametrize(
    "command",
    [
        "train digits-mlp", "sweep digits-mlp", "compare", "evaluate", "layers", "energy",
        "data list", "data verify", "data show", "data download", "data simulate",
        "records evaluate",
    ],
)  # fmt: skip
def test_the_folder_of_data_has_the_same_names_everywhere(command, capsys):
    assert run_cli(*command.split(), "--help") == 0
    assert "--data-root FOLDER, --data FOLDER" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["enrgy"], "did you mean 'energy'"),
        (["energy"], "name a model"),
        (["energy", "resnet91"], "did you mean 'resnet19'"),
        (["energy", "resnet19", "--dataset", "cifar"], "did you mean 'cifar10'"),
        (["energy", "resnet19", "--timesteps", "0"], "timesteps"),
        (["energy", "resnet19", "--rate", "-1"], ">= 0"),
        (["energy", "resnet19", "--mac", "0"], "must be a number > 0"),
        (["energy", "--weights", "nowhere.safetensors"], "cannot read weights"),
        (["energy", "cnn", "--inputs", "nowhere.npy"], "cannot read inputs"),
        (["energy", "cnn", "--inputs", "x", "--rate", "0.1"], "leave --rate out"),
        (["figures", "out", "--a", "-1"], "a > 0"),
        (["figures", "out", "--only", "cobwebs"], "did you mean 'cobweb'"),
    ],
)
def test_mistakes_end_with_one_line_and_exit_code_2(mistaken, arguments, message):
    assert message in mistaken(*arguments)


def test_inputs_of_the_wrong_kind_are_refused(capsys, saved, tmp_path):
    for name, content in {"int": np.zeros((2, 1, 8, 8), int), "shape": np.zeros((2, 3))}.items():
        np.save(tmp_path / f"{name}.npy", content)
        weights = str(saved[2])
        path = str(tmp_path / f"{name}.npy")
        assert run_cli("energy", "--weights", weights, "--inputs", path, "--dataset", "digits") == 2
        assert "quadspike: " in capsys.readouterr().err


@pytest.mark.parametrize("command", ["models", "figures out", "data list"])
def test_a_refused_option_points_to_the_help_of_its_command(command, capsys):
    assert run_cli(*command.split(), "--bogus") == 2
    assert f"quadspike {command.removesuffix(' out')} --help" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        "layers digits-mlp --out", "layers digits-mlp --figure", "energy resnet19 --json",
        "bench resnet8 --device cpu --smoke --out",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    ("place", "why"), [("file/x.png", "file: Not a directory"), ("here.png", "it is a folder")]
)
def test_a_file_that_cannot_be_written_is_refused_before_the_work(
    command, place, why, tmp_path, capsys
):
    (tmp_path / "file").touch()
    (tmp_path / "here.png").mkdir()
    assert run_cli(*command.split(), str(tmp_path / place)) == 2
    said = capsys.readouterr()
    assert why in said.err
    assert not said.out


@pytest.mark.parametrize("content", [b"0.5 0.25\n", b"", b"PK\x03\x04", b"\x93NUMPY\x01"])
def test_inputs_that_are_no_npy_file_are_said_to_be_none(content, capsys, saved, tmp_path):
    path = tmp_path / "inputs.txt"
    path.write_bytes(content)
    assert run_cli("energy", "--weights", str(saved[2]), "--inputs", str(path)) == 2
    assert capsys.readouterr().err.startswith(f"quadspike: {path} is no .npy file of numbers")


@pytest.mark.parametrize("command", ["energy", "figures", "models"])
def test_help_teaches(capsys, command):
    assert run_cli(command, "--help") == 0
    assert "usage" in capsys.readouterr().out
