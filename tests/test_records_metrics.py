"""The epochs that a record keeps, and which it refuses."""

from __future__ import annotations

import json

import pytest

from quadspike import QuadspikeError
from quadspike.json_table import as_table, from_table
from quadspike.recipes import create_recipe
from quadspike.records.metrics import as_lines, check_epochs, compact, rounded
from quadspike.records.store import LARGEST
from quadspike.training.schedule import learning_rate
from tests import run_folders


def test_part_of_a_data_set_is_taken_where_a_part_can_be_read():
    recipe = create_recipe("imagenet-resnet34", epochs=1, warmup_epochs=0)
    line = {"epoch": 1, "step": 10, "lr": learning_rate(recipe, 9, 10), "seconds": 1.0}
    line |= {"train_loss": 2.0, "train_accuracy": 0.5, "test_accuracy": 1234 / 3925}
    check_epochs(recipe, [line], 1.0)


def test_an_epoch_without_the_evaluation_that_was_due_is_said_to_have_none():
    recipe = create_recipe("imagenet-resnet34", epochs=1, warmup_epochs=0)
    line = {"epoch": 1, "step": 10, "lr": learning_rate(recipe, 9, 10), "seconds": 1.0}
    with pytest.raises(QuadspikeError, match="epoch 1 was not evaluated, but"):
        check_epochs(recipe, [line], 1.0)


def test_a_record_of_400_epochs_stays_small(tmp_path):
    folder = run_folders.make_run(tmp_path, model="resnet19", dataset="cifar10", epochs=400)
    found = json.loads((folder / "record.json").read_text())
    metrics, short = found["metrics"], compact(found["metrics"])
    layers = json.dumps([as_table(rounded(found[part])) for part in ("layers", "energy")])
    assert len(as_lines(metrics)) > 500_000
    lines = as_lines(as_table(short))
    assert len(lines) + len(layers) < 0.4 * LARGEST
    assert from_table([json.loads(line) for line in lines.splitlines()]) == short
    assert [line["test_accuracy"] for line in short] == [line["test_accuracy"] for line in metrics]
    looked = [line["epoch"] for line in short if "rates" in line]
    assert looked == [1, *range(20, 401, 20)]


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [{}],
        [{"a": None, "b": [1]}, {"a": 2.5, "b": []}],
        [{"a": None}, {"a": {"x": 1}}],
        [{"in": {"x": 1}, "late": 3}, {"in": {"x": 2}}, {"in": {"x": None}, "late": 4}],
        [{"in": {"x": 1}}, {"in": {"y": 2}}],  # no table
        [{"a": 1, "b": 2}, {"b": 3, "c": 4}, {"a": 5, "c": 6}],
    ],
)
def test_rows_come_back_from_a_table_as_they_were(rows):
    assert from_table(json.loads(json.dumps(as_table(rows)))) == rows
