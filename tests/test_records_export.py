"""Weights in half precision: the same network, in small files, with a figure of their own."""

from __future__ import annotations

import json
import shutil

import pytest
import torch

from quadspike import QuadspikeError, create_model
from quadspike.data.digits import load_digits
from quadspike.deploy import fold
from quadspike.models import load_model
from quadspike.records import Repository, evaluate_export, export, load_export, record_run
from quadspike.records.runs import RECORD
from quadspike.records.store import Store
from quadspike.records.tables import table
from quadspike.records.weights import MIB, halved
from quadspike.training.scoring import Score
from tests.conftest import run_cli
from tests.record_cases import change, make_repository, make_run, tiny


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("run") / "half", precision="bf16")


@pytest.fixture
def weights(trained, tmp_path):
    """The run's weights in several files."""
    export(trained, tmp_path / "weights", shard_mib=0.05)
    return tmp_path / "weights"


def test_every_file_keeps_to_its_size_and_holds_a_part(trained, weights):
    shards = sorted(weights.glob("*.safetensors"))
    assert len(shards) > 1
    assert all(path.stat().st_size <= 0.05 * MIB for path in shards)
    index = json.loads((weights / "index.json").read_text())
    assert sorted(index["files"]) == [path.name for path in shards]
    assert index["bytes"] == sum(path.stat().st_size for path in shards)
    assert index["bytes"] < 0.6 * (trained / "last.safetensors").stat().st_size


def test_the_whole_has_one_name_however_it_is_cut(trained, weights, tmp_path):
    index = export(trained, tmp_path / "one")
    assert list(index["files"]) == ["weights-01-of-01.safetensors"]
    assert index["sha256"] == json.loads((weights / "index.json").read_text())["sha256"]


def test_bfloat16_changes_no_logit_of_a_run_in_bf16(trained, weights):
    x = torch.randn(64, 1, 8, 8)
    with torch.autocast("cpu", torch.bfloat16), torch.inference_mode():
        before = load_model(trained / "last.safetensors").eval()(x)
        after = load_export(weights).eval()(x)
    assert torch.equal(before, after)
    assert not all(
        torch.equal(a, b)
        for a, b in zip(
            load_model(trained / "last.safetensors").parameters(),
            load_export(weights).parameters(),
            strict=True,
        )
    )


def test_float16_where_it_is_finer_and_holds_every_weight():
    model = create_model("mlp", in_channels=1, image_size=8, seed=0)
    name, tensors = halved(model, tiny())
    assert name == "float16"
    kinds = {tensor.dtype for tensor in tensors.values() if tensor.is_floating_point()}
    assert kinds == {torch.float16, torch.float32}
    with torch.no_grad():
        model.classifier.weight[0, 0] = 1e5
    assert halved(model, tiny())[0] == "bfloat16"


def test_what_is_deployed_has_folded_weights_in_half_and_sums_in_full(weights, monkeypatch):
    scored = []

    def score(model, source, recipe, *rest):
        scored.append((model, recipe.precision))
        return Score(0.5, 0.5, 2)

    monkeypatch.setattr("quadspike.records.weights.score", score)
    evaluate_export(weights, device="cpu", folded=True)
    (whole, first), (plain, second) = scored
    assert (first, second) == ("bf16", "fp32")
    folded = fold(whole).state_dict()
    assert any(name.endswith("norm.weight") for name in whole.state_dict())
    assert not any("norm" in name for name in folded)
    for name, tensor in plain.state_dict().items():
        half = name.endswith("weight")
        assert torch.equal(tensor, folded[name].half().float() if half else folded[name]), name
    kept = json.loads((weights / "evaluation.json").read_text())
    assert kept["folded_weights"] == "float16"


def says_always_three(model):
    """In place of folding, to see which network is scored as the folded one."""
    folded = fold(model)
    torch.nn.init.zeros_(folded.classifier.weight)
    torch.nn.init.zeros_(folded.classifier.bias)
    with torch.no_grad():
        folded.classifier.bias[3] = 1.0
    return folded


def test_the_score_is_repeated_and_becomes_the_headline(
    trained, weights, tmp_path, capsys, monkeypatch
):
    root = make_repository(tmp_path / "repository")
    add = ("records", "add", str(trained), "--records", str(root / "records"))
    assert run_cli(*add, "--export", str(weights)) == 2
    assert "have no score" in capsys.readouterr().err
    for said in ("kept in evaluation.json", "the score kept is"):
        assert run_cli("records", "evaluate", str(weights), "--device", "cpu") == 0
        assert said in capsys.readouterr().out
    kept = json.loads((weights / "evaluation.json").read_text())
    assert kept["accuracy"] == evaluate_export(weights, device="cpu").fresh.accuracy
    noted = json.loads((trained / "record.json").read_text())["summary"]["test_accuracy"]
    assert kept["accuracy"] == noted
    assert "folded_accuracy" not in kept
    monkeypatch.setattr("quadspike.records.weights.fold", says_always_three)
    assert run_cli("records", "evaluate", str(weights), "--device", "cpu", "--folded") == 0
    threes = float((load_digits()[1].labels == 3).double().mean())
    assert f", folded {threes:.2%}" in capsys.readouterr().out
    kept = json.loads((weights / "evaluation.json").read_text())
    assert kept["folded_accuracy"] == pytest.approx(threes)
    assert kept["accuracy"] == noted

    # A folded score from before its weights were named keeps that silence.
    before = {key: value for key, value in kept.items() if key != "folded_weights"}
    (weights / "evaluation.json").write_text(json.dumps(before))
    evaluate_export(weights, device="cpu", folded=True)
    assert json.loads((weights / "evaluation.json").read_text()) == before

    # A figure other than the run's own, to see whose the headline is.
    kept["accuracy"] = (round(noted * 359) + 1) / 359
    (weights / "evaluation.json").write_text(json.dumps(kept))
    assert evaluate_export(weights, device="cpu", folded=True).kept == kept["accuracy"]
    assert json.loads((weights / "evaluation.json").read_text()) == kept  # the first stays
    assert run_cli(*add, "--export", str(weights)) == 0
    content = json.loads((root / "records/runs/half/record.json").read_text())
    assert content["summary"]["accuracy"] == kept["accuracy"]
    assert content["summary"]["test_accuracy"] == noted
    assert content["summary"]["accuracy_of"] == "the last epoch's weights in bfloat16"
    assert content["export"]["sha256"] == kept["sha256"]
    assert run_cli("records", "verify", "--records", str(root / "records")) == 0
    shown = table(Store(root / "records"))
    assert f"**{100 * kept['accuracy']:.2f}**" in shown
    assert "in bfloat16" in shown

    for file, keys, value, said in (
        ("index.json", ("of",), "0" * 64, "of another run"),
        ("index.json", ("sha256",), "0" * 64, "is of other weights"),
        ("evaluation.json", ("accuracy",), 0.5, "is no share of 359"),
        ("evaluation.json", ("folded_accuracy",), 0.5, "is no share of 359"),
    ):
        copy = tmp_path / file
        shutil.copytree(weights, copy, dirs_exist_ok=True)
        change(copy / file, keys, value)
        with pytest.raises(QuadspikeError, match=said):
            record_run(trained, Repository(root), copy)
    assert RECORD in record_run(trained, Repository(root), weights)


def test_damage_and_mistakes_are_told(trained, weights, tmp_path, capsys):
    assert run_cli("records", "export", str(trained), "--out", str(weights)) == 2
    assert "not an empty folder" in capsys.readouterr().err
    small = ("records", "export", str(trained), "--out", str(tmp_path / "x"))
    assert run_cli(*small, "--shard-mib", "0.001") == 2
    assert "raise --shard-mib" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()
    assert run_cli(*small, "--shard-mib", "0") == 2
    assert "more than 0" in capsys.readouterr().err
    (tmp_path / "taken").touch()
    assert run_cli("records", "export", str(trained), "--out", str(tmp_path / "taken/x")) == 2
    assert "cannot make the folder" in capsys.readouterr().err
    assert run_cli("records", "export", str(tmp_path), "--out", str(tmp_path / "x")) == 2
    assert "is no run" in capsys.readouterr().err
    assert run_cli("records", "evaluate", str(tmp_path)) == 2
    assert "holds no exported weights" in capsys.readouterr().err
    shard = min(weights.glob("*.safetensors"))
    content = bytearray(shard.read_bytes())
    content[-1] ^= 1
    shard.write_bytes(content)
    assert run_cli("records", "evaluate", str(weights)) == 2
    assert "not the file that was exported" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("file", "key"), [("index.json", "dtype"), ("evaluation.json", "accuracy")]
)
def test_a_file_that_lost_an_entry_is_damaged(weights, capsys, file, key):
    again = ("records", "evaluate", str(weights), "--device", "cpu")
    assert run_cli(*again) == 0
    found = json.loads((weights / file).read_text())
    del found[key]
    (weights / file).write_text(json.dumps(found))
    assert run_cli(*again) == 2
    assert f"{file} is damaged: KeyError('{key}')" in capsys.readouterr().err
