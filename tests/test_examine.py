from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from quadspike import QIF, QuadspikeError
from quadspike.analysis.figures.depth import draw_depth
from quadspike.analysis.figures.layer_membranes import draw_membranes
from quadspike.data.split import Split
from quadspike.examine import Subject, examine_layers, first_batch
from quadspike.training import train
from quadspike.training.distributed import Workers
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
    with pytest.raises(QuadspikeError, match=r"last.safetensors: .*, or use the initial weights"):
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
    three = draw_depth(networks)
    assert [line.get_ydata()[0] for line in three.axes[2].lines if len(line.get_ydata())][:2] == [
        network["layers"][0]["temporal_correlation"] for network in networks
    ]
    still = [
        {**n, "layers": [{**o, "temporal_correlation": None} for o in n["layers"]]}
        for n in networks
    ]
    assert len(draw_depth(still).axes) == 2
    unlike = [text.get_text() for text in three.axes[2].get_xticklabels()]
    assert unlike == [str(place) for place in range(1, len(networks[1]["layers"]) + 1)]
    again = tmp_path / "again.svg"
    assert run_cli("layers", str(out), "--figure", str(again)) == 0
    assert capsys.readouterr().out == printed
    assert again.read_text() == figure.read_text()
    assert run_cli("layers", str(out), "--weights", "best") == 2
    assert "leave --weights out" in capsys.readouterr().err


def test_membranes_are_drawn_from_a_run_and_from_its_file(finished, tmp_path):
    initial, both = tmp_path / "initial.json", tmp_path / "both.json"
    options = ["--samples", "16", "--device", "cpu"]
    assert (
        run_cli("layers", str(finished), "--weights", "initial", "-o", str(initial), *options) == 0
    )
    one, two = tmp_path / "one.svg", tmp_path / "two.svg"
    out = ("--out", str(both), "--membranes", str(one), *options)
    assert run_cli("layers", str(initial), str(finished), *out) == 0
    assert run_cli("layers", str(both), "--membranes", str(two)) == 0
    assert one.read_text() == two.read_text()
    assert max(map(len, both.read_text().splitlines())) > 200  # counts are on one line
    networks = json.loads(both.read_text())["networks"]
    assert [network["weights"] for network in networks] == ["initial", "last"]
    assert networks[0] == json.loads(initial.read_text())["networks"][0]
    for layer in networks[1]["layers"]:
        seen = layer["histogram"]
        total = sum(seen["counts"]) + seen["below"] + seen["above"]
        assert total == 2 * 16 * 128  # steps, images, neurons


def test_a_panel_says_what_its_layer_does():
    networks = [
        examine_layers(given, samples=16, device="cpu") for given in (RECIPE, f"{RECIPE},norm=bn")
    ]
    with_theory, both = draw_membranes(networks[:1]), draw_membranes(networks)
    first = with_theory.axes[0]
    layer = networks[0]["layers"][0]
    assert first.get_title(loc="left") == "hidden1"
    said = f"{layer['inside_window']:.0%} inside, {layer['rate']:.1%} fire"
    assert [text.get_text() for text in first.texts] == [said]
    low, high = first.get_xlim()
    assert low < min(layer["window"]) < max(layer["window"]) < high
    heights, edges, _ = first.patches[1].get_data()
    seen = layer["histogram"]
    inside = sum(seen["counts"]) / (sum(seen["counts"]) + seen["below"] + seen["above"])
    assert float((heights * np.diff(edges)).sum()) == pytest.approx(inside)
    density = QIF().density()
    curve = max(first.lines, key=lambda line: len(line.get_xdata()))
    assert curve.get_ydata() == pytest.approx(density.pdf(curve.get_xdata()))
    # The second network has no tdBN, and so no theory.
    assert [len(both.axes[0].texts), len(both.axes[0].lines)] == [2, len(first.lines) + 1]


def test_membranes_that_cannot_be_drawn(tmp_path, capsys):
    figure = str(tmp_path / "x.png")
    assert run_cli("layers", RECIPE, RECIPE, RECIPE, "--membranes", figure) == 2
    assert "give one or two" in capsys.readouterr().err
    old = Path(__file__).parents[1] / "records/layers/study-lif-h200.json"
    few = json.loads(old.read_text())
    few["networks"] = few["networks"][:1]
    (tmp_path / "old.json").write_text(json.dumps(few))
    assert run_cli("layers", str(tmp_path / "old.json"), "--membranes", figure) == 2
    assert "written before" in capsys.readouterr().err
    depth = tmp_path / "depth.png"
    assert run_cli("layers", str(tmp_path / "old.json"), "--figure", str(depth)) == 0
    assert depth.exists()
    assert not Path(figure).exists()
    deeper = "digits-cnn:timesteps=2"
    options = ["--samples", "4", "--device", "cpu"]
    assert run_cli("layers", RECIPE, deeper, "--membranes", figure, *options) == 2
    assert "different layers" in capsys.readouterr().err


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


def test_fewer_images_than_asked_for_are_said_to_be(capsys):
    assert run_cli("layers", RECIPE, "--samples", "5000", "--device", "cpu") == 0
    assert f"{RECIPE} has 1,408 training images an epoch, fewer" in capsys.readouterr().out
    assert run_cli("layers", RECIPE, "--samples", "8", "--device", "cpu") == 0
    assert "fewer" not in capsys.readouterr().out


def test_initial_weights_that_are_others_by_now_are_refused(tmp_path):
    recipe = Recipe("mine", "digits", "mlp", epochs=1, batch_size=256)
    train(recipe, out=tmp_path / "first", device="cpu")
    train(recipe, out=tmp_path / "run", device="cpu", init_from=tmp_path / "first")
    examine_layers(tmp_path / "run", weights="initial", samples=8, device="cpu")
    shutil.copy(tmp_path / "run/last.safetensors", tmp_path / "first/last.safetensors")
    with pytest.raises(QuadspikeError, match="began with other weights"):
        examine_layers(tmp_path / "run", weights="initial", samples=8, device="cpu")
