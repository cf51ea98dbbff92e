"""Losses and training aids from the command line, end to end on the digits."""

from __future__ import annotations

import json

import pytest
import torch
from torch import nn

from quadspike import Network, Soma, create_model, load_model
from quadspike.data.split import Split
from quadspike.deploy import fold, stream
from quadspike.models.files import read_tensors
from quadspike.training import Recipe, evaluate, train
from quadspike.training.checkpoint import load_checkpoint
from tests.conftest import run_cli

QUICK = ("--epochs", "2", "--timesteps", "2", "--device", "cpu")


def run(out, *fields, recipe="digits-cnn"):
    assert run_cli("train", recipe, *QUICK, *fields, "--out", str(out)) == 0
    return json.loads((out / "record.json").read_text())


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    out = tmp_path_factory.mktemp("plain") / "run"
    return out, run(out)


@pytest.mark.parametrize(
    "fields",
    [
        "--loss im",
        "--loss lts",
        "--aid imp --loss lts",
        "--aid sml",
        "--aid sml --loss tet --precision bf16",
        "--aid shortcuts",
        "--aid shortcuts --shortcut-form sum --loss im --model resnet8 --accumulate 2",
    ],
)
def test_it_learns_and_is_scored_again_from_its_file(tmp_path, fields):
    out = tmp_path / "run"
    record = run(out, *fields.split())
    assert record["summary"]["test_accuracy"] > 0.8
    found = evaluate(out, device="cpu")
    assert found.fresh.accuracy == found.recorded
    model = load_model(out / "last.safetensors").eval()
    assert model.readout == ("last" if "lts" in fields else "mean")
    x = torch.randn(3, 1, 8, 8)
    live = stream(fold(model))
    frames = torch.stack([live(x) for _ in range(model.timesteps)])
    torch.testing.assert_close(frames, fold(model)(x))


@pytest.mark.parametrize("aid", ["sml", "shortcuts"])
def test_heads_disappear_at_inference(tmp_path, plain, aid):
    """The file, its model and the record's figures are those of a run without heads."""
    out = tmp_path / "run"
    record = run(out, "--aid", aid)
    folder, without = plain
    for which in ("last", "best"):
        ours, theirs = (read_tensors(f / f"{which}.safetensors") for f in (out, folder))
        assert {n: t.shape for n, t in ours.items()} == {n: t.shape for n, t in theirs.items()}
        assert any(not torch.equal(t, theirs[n]) for n, t in ours.items())
    assert record["parameters"] == without["parameters"]
    assert len(record["energy"]) == len(without["energy"])
    names = [layer["layer"] for layer in record["layers"]]
    assert names == [layer["layer"] for layer in without["layers"]]
    model, other = (load_model(f / "last.safetensors") for f in (out, folder))
    assert model.config == other.config
    assert [type(m) for m in fold(model).modules()] == [type(m) for m in fold(other).modules()]
    # The checkpoint is the run's, and holds what the run needs.
    saved = load_checkpoint(out / "checkpoint.safetensors")
    assert saved.part("model").keys() == ours.keys() == saved.part("best").keys()
    assert saved.part("heads")
    assert saved.part("heads-optimizer")


def test_initial_membranes_stay_with_the_network(tmp_path, plain):
    out = tmp_path / "run"
    record = run(out, "--aid", "imp")
    model = load_model(out / "last.safetensors")
    start = create_model("cnn", in_channels=1)
    learned = [soma.initial_u for soma in model.somas().values()]
    assert [tuple(u.shape) for u in learned] == [(32, 8, 8), (64, 4, 4), (128, 2, 2)]
    more = record["parameters"] - plain[1]["parameters"]
    assert more == sum(u.numel() for u in learned)
    assert record["parameters"] == sum(p.numel() for p in start.parameters()) + more
    assert any(u.abs().max() > 0.1 for u in learned)  # drawn within 0.2 thresholds of 0.5


def test_a_run_with_initial_membranes_can_start_from_one_without(tmp_path, plain):
    out = tmp_path / "run"
    record = run(out, "--aid", "imp", "--init-from", str(plain[0]))
    assert any("initial_u" in note and "new" in note for note in record["notes"])
    with_imp, without = tmp_path / "run", tmp_path / "other"
    again = ("train", "digits-cnn", *QUICK, "--init-from", str(with_imp), "--out", str(without))
    assert run_cli(*again) == 2  # membranes would be lost without a word


def test_ones_own_network_learns_its_initial_membranes(tmp_path):
    def own():
        layers = (nn.Flatten(), nn.Linear(36, 16, bias=False), Soma(16), nn.Linear(16, 2))
        return Network(*layers, timesteps=3, input_rank=4)

    images = torch.randint(0, 256, (64, 1, 6, 6), dtype=torch.uint8)
    split = Split("mine", images, (images.float().mean((1, 2, 3)) > 127).long(), ("dark", "bright"))
    recipe = Recipe("mine", "own", "own", timesteps=3, epochs=1, batch_size=32, aid="imp")
    train(recipe, model=own(), data=(split, split), out=tmp_path / "run", device="cpu")
    found = evaluate(tmp_path / "run", model=own(), data=(split, split), device="cpu")
    assert found.fresh.accuracy == found.recorded


def test_a_dry_run_counts_the_network_alone(capsys):
    for fields in ((), ("--aid", "sml")):
        assert run_cli("train", "digits-cnn", *fields, "--dry-run", "--device", "cpu") == 0
        shown = capsys.readouterr().out
        assert "94,186 parameters" in shown
