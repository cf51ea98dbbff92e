"""The table of the records, and the pages that hold it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from statistics import fmean, stdev

import pytest

from quadspike import QuadspikeError
from quadspike.recipes import create_recipe
from quadspike.records import Store, filled, verify
from quadspike.records.naming import recipe_name
from quadspike.records.tables import HEADINGS, NONE_YET, table
from tests.conftest import run_cli
from tests.record_cases import put

ROOT = Path(__file__).parent.parent


def rows(text: str) -> list[dict[str, str]]:
    lines = [line for line in text.splitlines() if line.startswith("| ")][2:]
    return [
        dict(zip(HEADINGS, map(str.strip, line.strip("|").split(" | ")), strict=True))
        for line in lines
    ]


def test_without_records_the_table_says_so(tmp_path):
    assert table(Store(tmp_path)) == NONE_YET + "\n"


def test_seeds_of_a_recipe_are_one_row_beside_the_paper(tmp_path):
    store = Store(tmp_path)
    accuracies = (0.9640, 0.9650, 0.9648)
    for seed, accuracy in enumerate(accuracies):
        put(store, f"full-{seed}", accuracy, seed=seed, evaluate_every=1 + seed)
    put(store, "tet", 0.9671, loss="tet")
    put(store, "other-device", 0.90, device="NVIDIA A100", seed=9)
    put(store, "short", 0.95, epochs=140, weight_decay=5e-4, validation=5000, evaluate_every=5)
    tet, full, short, other = rows(table(store))
    assert other["accuracy, %"] == "**90.00** (90.10*), 1 seed"
    percents = [100 * a for a in accuracies]
    assert full["accuracy, %"] == (
        f"**{fmean(percents):.2f} ± {stdev(percents):.2f}** ({fmean(percents) + 0.1:.2f}*), 3 seeds"
    )
    assert full["the paper, %"] == "96.44 ± 0.07"
    assert full["its time"] == "5 h"
    assert full["its energy"].replace("\u00a0", " ") == "0.633 mJ"
    assert full["network, data"] == "resnet19, cifar10"
    assert full["time"].replace("\u00a0", " ") == "22 min 00 s, NVIDIA H200"
    assert full["energy an image"].replace("\u00a0", " ") == "0.410 mJ"
    assert tet["accuracy, %"] == "**96.71** (96.81*), 1 seed"
    assert tet["the paper, %"] == "96.70 ± 0.08"
    assert short["recipe"] == "cifar10-resnet19, weight decay = 0.0005, validation = 5000"
    assert short["accuracy, %"] == "**95.00** (95.10), 1 seed"
    assert short["the paper, %"] == "(96.44 ± 0.07)"
    assert short["its time"] == "(5 h)"
    assert short["its energy"].replace("\u00a0", " ") == "(0.633 mJ)"


def test_a_run_that_is_a_packaged_recipe_by_its_fields_has_that_one_s_name(tmp_path):
    store, strong = Store(tmp_path), create_recipe("cifar10-resnet19-strong")
    by_flags = strong.differences(create_recipe("cifar10-resnet19"))
    by_flags = {field: ours for field, (ours, _) in by_flags.items() if field != "name"}
    put(store, "flags", 0.9672, **by_flags, seed=1, turn=0.01)  # which is not Muon's here
    put(store, "name", 0.9670, recipe="cifar10-resnet19-strong")
    put(store, "mine", 0.9668, **by_flags, name="mine")
    (together,) = rows(table(store))
    assert together["recipe"] == "cifar10-resnet19-strong"
    assert together["accuracy, %"].endswith("3 runs of 2 seeds")  # whatever one calls it


def test_a_name_says_only_what_matters():
    recipe = create_recipe("cifar10-resnet19", weight_decay=2e-4, turn=0.01, tet_lambda=0.1)
    assert recipe_name(recipe) == "cifar10-resnet19, weight decay = 0.0002"
    turning = recipe.but(optimizer="muon", loss="tet")
    assert "turn = 0.01" in recipe_name(turning)
    assert "tet lambda = 0.1" in recipe_name(turning)


def test_a_group_that_has_no_runs_is_answered_with_those_that_have(tmp_path):
    put(Store(tmp_path), "window/mean", 0.9)
    with pytest.raises(QuadspikeError, match=r"'widow' has no runs on record.* are: window"):
        table(Store(tmp_path), "widow")


def test_a_repeated_seed_is_no_second_seed(tmp_path):
    store = Store(tmp_path)
    put(store, "a", 0.96)
    put(store, "b", 0.97)
    (row,) = rows(table(store))
    assert row["accuracy, %"].endswith("2 runs of 1 seed")


def test_a_record_is_no_group(tmp_path):
    store = Store(tmp_path)
    put(store, "digits", 0.96)
    with pytest.raises(QuadspikeError, match="digits is a record, and cannot be a group too"):
        put(store, "digits/lif", 0.95)
    assert store.names("runs") == ["digits"]
    assert len(rows(table(store))) == 1


def test_hidden_files_are_no_records(tmp_path):
    store = Store(tmp_path / "records")
    put(store, "full", 0.96)
    (store.root / "runs/.DS_Store").touch()
    (store.root / "runs/.half.partial").mkdir()
    (store.root / "runs/.half.partial/record.json").touch()
    assert store.names("runs") == ["full"]


def test_groups_have_tables_of_their_own_and_pages_hold_them(tmp_path, capsys):
    root = tmp_path / "records"
    store = Store(root)
    put(store, "full", 0.96)
    put(store, "window/mean", 0.83, window="mean")
    assert [row["recipe"] for row in rows(table(store))] == ["cifar10-resnet19"]
    assert "`cifar10-resnet19` with window mean;" in table(store, "window")
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- records -->\nold\n<!-- /records -->\nb\n<!-- records window -->\n"
                    "<!-- /records -->\nc\n")  # fmt: skip
    write = ("records", "table", "--records", str(root), "--write", str(page))
    assert run_cli(*write) == 0
    assert "made anew" in capsys.readouterr().out
    assert page.read_text() == (
        f"a\n<!-- records -->\n{table(store)}<!-- /records -->\nb\n<!-- records window -->\n"
        f"{table(store, 'window')}<!-- /records -->\nc\n"
    )
    assert run_cli(*write) == 0
    assert "up to date" in capsys.readouterr().out
    assert run_cli("records", "table", "window", "--records", str(root)) == 0
    assert capsys.readouterr().out == table(store, "window")
    before = page.read_text()
    elsewhere = ("--records", str(tmp_path / "nowhere"))
    assert run_cli("records", "table", "--write", str(page), *elsewhere) == 2
    assert "there is no folder" in capsys.readouterr().err
    assert page.read_text() == before
    page.write_text("nothing")
    assert run_cli(*write) == 2
    assert "has no place for a table" in capsys.readouterr().err
    page.write_bytes("<!-- records -->\nä\n<!-- /records -->\n".encode("latin-1"))
    assert run_cli(*write) == 2
    assert "is no text in UTF-8" in capsys.readouterr().err


def test_what_follows_a_marker_that_nothing_ends_is_kept(tmp_path):
    shown = "`<!-- records -->\n"
    page = f"{shown}text\n<!-- records -->\nmore\n<!-- records -->\nold\n<!-- /records -->\n"
    new = filled(page, Store(tmp_path))
    assert new == page.replace("old", NONE_YET)


# -- this repository -------------------------------------------------------------------------


@pytest.mark.parametrize("page", sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]), ids=str)
def test_a_page_holds_exactly_what_the_command_makes(page):
    text = page.read_text(encoding="utf-8")
    assert filled(text, Store(ROOT / "records")) == text
    if page.name == "README.md":
        assert "<!-- records -->" in text


def test_every_record_of_this_repository_holds():
    asked = ["git", "-C", str(ROOT), "rev-parse", "--is-shallow-repository"]
    known = subprocess.run(asked, capture_output=True, text=True)
    if known.stdout.strip() != "false":
        pytest.skip("no repository with all of its history")
    assert [v for v in verify(Store(ROOT / "records")) if v.problem] == []


def test_a_run_from_trained_weights_is_not_the_paper_s_training(tmp_path):
    store = Store(tmp_path)
    put(store, "tuned", 0.9644, content={"init_from": {"sha256": "ab" * 32}})
    assert "| (96.44 ± 0.07) |" in table(store)
