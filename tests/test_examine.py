from __future__ import annotations

import json

import pytest
import torch

from quadspike import QuadspikeError
from quadspike.data.split import Split
from quadspike.training.distributed import Workers
from quadspike.training.examine import Subject, examine_layers, first_batch
from quadspike.training.recipe import Recipe
from quadspike.training.sources import from_splits
from tests.conftest import run_cli

RECIPE = "digits-mlp:timesteps=2,batch_size=32"


def test_fields_of_a_recipe_are_read_as_what_they_are():
    recipe = Subject.of("digits-cnn:window=mean,eta=0.5,detach_reset=true,clip=null").recipe
    assert (recipe.window, recipe.eta, recipe.detach_reset) == ("mean", 0.5, True)
    assert recipe.clip is None


@pytest.mark.parametrize(
    ("given", "options", "words"),
    [
        ("nothing-here", {}, "neither a run's folder nor a recipe"),
        ("digits-mlp:window", {}, "NAME=VALUE"),
        ("digits-mlp:winndow=mean", {}, "did you mean 'window'"),
        (RECIPE, {"weights": "best"}, "only weights are the initial"),
        (RECIPE, {"weights": "first"}, "unknown weights 'first'"),
        (RECIPE, {"images": "held-out"}, "holds no images out"),
        (RECIPE, {"samples": 0}, "samples must be"),
    ],
)
def test_what_cannot_be_looked_at(given, options, words):
    with pytest.raises(QuadspikeError, match=words):
        examine_layers(given, device="cpu", **options)


def test_a_run_s_weights_are_the_ones_asked_for(finished):
    first, last = (
        examine_layers(finished, weights=weights, samples=64, device="cpu")
        for weights in ("initial", "last")
    )
    assert first["loss"] > last["loss"] + 0.1
    assert (first["weights"], last["weights"], last["samples"]) == ("initial", "last", 64)
    assert examine_layers(finished, samples=64, device="cpu") == last


def test_an_unfinished_run_has_initial_weights_only(run):
    (run / "last.safetensors").unlink()
    with pytest.raises(QuadspikeError, match=r"no last.safetensors yet"):
        examine_layers(run, device="cpu")
    assert examine_layers(run, weights="initial", samples=8, device="cpu")["layers"]


def test_held_out_images_and_more_than_a_batch():
    found = examine_layers(f"{RECIPE},validation=100", images="held-out", samples=80, device="cpu")
    assert (found["samples"], found["images"]) == (80, "held-out")
    assert examine_layers(RECIPE, samples=10**6, device="cpu")["samples"] > 1000


@pytest.mark.parametrize(
    "fields",
    [
        "model=cnn,loss=im",
        "model=cnn,aid=sml",
        "loss=tet,precision=bf16",
        "aid=imp,surrogate=evolving",
    ],
)
def test_every_loss_and_aid_comes_down_the_same_way(fields):
    found = examine_layers(f"{RECIPE},{fields}", samples=16, device="cpu")
    assert all(layer["gradient"]["output"] > 0 for layer in found["layers"])


def test_clips_are_cut_by_sample_not_by_step():
    clips = torch.randint(0, 5, (12, 3, 2, 8, 8), dtype=torch.uint8)
    split = Split("clips", clips, torch.arange(12) % 2, ("a", "b"), levels=5)
    recipe = Recipe("mine", "own", "cnn", timesteps=3, batch_size=4, accumulate=1)
    data = from_splits(recipe, split, split, torch.device("cpu"), Workers())
    batch = first_batch(data, "training", 6)
    assert batch.inputs.shape == (3, 6, 2, 8, 8)
    assert batch.labels.shape == (6,)


def test_the_command_compares_prints_writes_and_draws(finished, tmp_path, capsys):
    block = "digits-cnn:model=resnet8,residual=sum-then-fire,window=mean,timesteps=2"
    out, figure = tmp_path / "layers.json", tmp_path / "layers.svg"
    options = f"--samples 16 --device cpu --out {out} --figure {figure}".split()
    assert run_cli("layers", str(finished), block, *options) == 0
    printed = capsys.readouterr().out
    assert "last weights, 16 training images" in printed
    assert "| hidden1 |" in printed
    assert "| layer3.0 |" in printed
    networks = json.loads(out.read_text())["networks"]
    assert [network["label"] for network in networks] == [finished.name, block]
    assert figure.read_text().startswith("<?xml")
    again = tmp_path / "again.svg"
    assert run_cli("layers", str(out), "--figure", str(again)) == 0
    assert capsys.readouterr().out == printed
    assert again.read_text() == figure.read_text()


@pytest.mark.parametrize("text", ["{", "[]", '{"format": 2, "networks": []}', '{"format": 1}'])
def test_a_damaged_file_of_layers_is_refused(tmp_path, capsys, text):
    (tmp_path / "layers.json").write_text(text)
    assert run_cli("layers", str(tmp_path / "layers.json")) == 2
    assert "is not what `quadspike layers --out` writes" in capsys.readouterr().err


def test_the_command_s_mistakes(capsys):
    assert run_cli("layers") == 2
    assert run_cli("layers", "nothing") == 2
    assert "neither a run" in capsys.readouterr().err
    assert run_cli("layers", RECIPE, "--samples", "4", "--device", "cpu", "--figure", "x.gif") == 2
    assert "unknown figure format 'gif'" in capsys.readouterr().err
