"""A run folder is read, or refused with its file's name and what is wrong in it."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import pytest

from quadspike import QuadspikeError
from quadspike.recipes import create_recipe
from quadspike.report import read_run
from quadspike.training import train

from .run_folders import make_run


def test_a_finished_run_is_read(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path / "run"))
    assert (run.name, run.recipe.timesteps, len(run.epochs)) == ("digits-qif", 4, 12)
    assert run.record is not None
    assert run.record.summary.test_accuracy == run.epochs[-1].test_accuracy
    assert [layer.layer for layer in run.record.layers] == list(run.epochs[0].rates)
    assert run.record.neuron is not None
    assert run.record.neuron["name"] == "qif"


def test_a_record_alone_is_a_run(tmp_path: Path) -> None:
    record = make_run(tmp_path / "run") / "record.json"
    assert read_run(record.rename(tmp_path / "kept.json")).epochs[-1].epoch == 12


def test_a_run_that_was_stopped_in_its_first_epoch_is_read(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", done=1)
    record = json.loads((folder / "record.json").read_text())
    summary = {"status": "stopped", "epochs": 0, "steps_beyond": 3, "seconds": 0.1}
    (folder / "record.json").write_text(json.dumps({**record, "metrics": [], "summary": summary}))
    (folder / "metrics.jsonl").unlink()
    for path in (folder, folder / "record.json"):
        assert (read_run(path).path, read_run(path).record) == (folder, None)


def test_a_folder_of_several_runs_is_not_taken_for_one(tmp_path: Path) -> None:
    """A sweep's and a comparison's have a recipe of their own."""
    first = make_run(tmp_path / "qif" / "seed-0")
    make_run(tmp_path / "tet" / "seed-0", loss="tet")
    shutil.copy(first / "recipe.json", tmp_path)
    with pytest.raises(QuadspikeError, match=rf"it holds 2; give .*, such as {first}"):
        read_run(tmp_path)


def test_a_run_under_way_has_the_epochs_so_far(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", finished=False, done=3)
    run = read_run(folder)
    assert run.record is None
    assert [epoch.epoch for epoch in run.epochs] == [1, 2, 3]
    (folder / "metrics.jsonl").unlink()
    assert read_run(folder).epochs == ()


def test_a_null_number_is_nan(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", finished=False, done=1)
    path = folder / "metrics.jsonl"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"train_loss": None}) + "\n")
    assert math.isnan(read_run(folder).epochs[0].train_loss)


def test_no_folder_and_no_run_are_refused(tmp_path: Path) -> None:
    with pytest.raises(QuadspikeError, match=r"nowhere does not exist.*give a folder"):
        read_run(tmp_path / "nowhere")
    with pytest.raises(QuadspikeError, match=r"is no run: it holds neither record\.json nor"):
        read_run(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("record.json", '{"format": 1, "na', r"record\.json is damaged"),
        ("record.json", b"\xff\xfe", r"record\.json is damaged"),
        ("record.json", "[" * 100_000, r"record\.json is damaged"),
        ("record.json", "[]", r"record\.json is damaged"),
        ("record.json", '{"format": 3}', r"record\.json: it has format 3.*reads up to 2"),
        ("record.json", "{}", r"record\.json is damaged: KeyError 'format'"),
        ("record.json", '{"format": 1}', r"record\.json is damaged: KeyError 'layers'"),
        ("recipe.json", '{"format": 1, "recipe": {"name": "x"}}', r"recipe\.json.*'dataset'"),
        ("recipe.json", '{"format": 1, "recipe": {"lrr": 1}}', r"recipe\.json.*'lrr'"),
        ("metrics.jsonl", "{}\n", r"metrics\.jsonl is damaged: .*'epoch'"),
        ("metrics.jsonl", "\n{\n", r"metrics\.jsonl is damaged"),
    ],
)
def test_damage_names_the_file(
    tmp_path: Path, name: str, content: str | bytes, message: str
) -> None:
    folder = make_run(tmp_path / "run", finished=name == "record.json", done=2)
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(QuadspikeError, match=message):
        read_run(folder)


def test_invented_records_have_what_real_ones_have(tmp_path):
    def shape(value):
        if isinstance(value, dict):
            return {key: shape(inner) for key, inner in value.items() if key != "recipe"}
        return [shape(value[0])] if isinstance(value, list) and value else None

    recipe = create_recipe("digits-cnn-short", epochs=2, validation=200)
    train(recipe, out=tmp_path / "real", device="cpu")
    make_run(tmp_path / "invented", **recipe.as_dict())
    found = [
        json.loads((tmp_path / name / "record.json").read_text()) for name in ("real", "invented")
    ]
    real, invented = ({**shape(each), "metrics": None, "neuron": None} for each in found)
    assert invented == real
    assert found[1]["metrics"][0].keys() == found[0]["metrics"][0].keys()
