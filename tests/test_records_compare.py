"""Records of comparisons."""

from __future__ import annotations

import json
import shutil

import pytest

from quadspike.comparison import compare
from quadspike.records import Store, verify
from tests.conftest import run_cli
from tests.record_cases import change, sum_anew, tiny


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    out = tmp_path_factory.mktemp("compared") / "digits"
    compare(tiny(epochs=1), ["qif", "tet"], out=out, seeds=2, device="cpu")
    change(out / "comparison.json", ("environment", "commit"), None)
    change(out / "comparison.json", ("environment", "clean"), None)
    return out


@pytest.fixture
def record(records, compared):
    assert run_cli("records", "add", str(compared), "--records", str(records)) == 0
    return records / "compare" / "digits"


def test_a_comparison_is_kept_without_its_pictures_and_holds(record, records, capsys):
    assert {path.name for path in record.iterdir()} == {
        "comparison.json",
        "table.md",
        "table.csv",
        "SHA256SUMS",
    }
    capsys.readouterr()
    assert run_cli("records", "verify", "--records", str(records)) == 0
    assert "compare/digits holds: 2 methods, 4 runs of digits-mlp" in capsys.readouterr().out


def test_any_change_is_noticed(record, records):
    for path in record.iterdir():
        text = path.read_text()
        path.write_text(text.replace("1", "2", 1))
        assert any(verdict.problem for verdict in verify(Store(records))), path.name
        path.write_text(text)
    assert not any(verdict.problem for verdict in verify(Store(records)))


@pytest.mark.parametrize(
    ("keys", "value", "said"),
    [
        (("rows", 0, "accuracy"), 99.9, "qif has accuracy 99.9, its runs give"),
        (("rows", 1, "energy_mj"), 1.0, "tet has energy_mj 1.0"),
        (("outcomes", 0, "accuracy"), 0.999, "qif has accuracy"),
        (("environment", "source"), "0" * 64, "fingerprint"),
        (("outcomes",), [], "its runs give None"),
        (("outcomes", 1, "seed"), 1, "just one outcome of each method and seed"),
        (("seeds",), 3, "just one outcome of each method and seed"),
        (("rows",), [], "just one outcome of each method and seed"),
    ],
)
def test_a_forger_who_sums_anew_is_noticed(record, records, keys, value, said):
    change(record / "comparison.json", keys, value)
    sum_anew(record)
    (verdict,) = verify(Store(records))
    assert said in verdict.problem


@pytest.mark.parametrize(
    ("file", "said"), [("table.md", "another accuracy"), ("table.csv", "accuracy_percent in")]
)
def test_a_forged_table_is_noticed(record, records, file, said):
    row = json.loads((record / "comparison.json").read_text())["rows"][0]
    digits = 2 if file == "table.md" else 10
    text = (record / file).read_text()
    shown = f"{row['accuracy']:.{digits}f}"
    assert shown in text
    (record / file).write_text(text.replace(shown, f"{row['accuracy'] + 1:.{digits}f}"))
    sum_anew(record)
    (verdict,) = verify(Store(records))
    assert said in verdict.problem


@pytest.mark.parametrize("more", ["9", " ± 0.01"])
def test_a_figure_that_goes_on_in_the_table_is_noticed(record, records, more):
    row = json.loads((record / "comparison.json").read_text())["rows"][0]
    text = (record / "table.md").read_text()
    shown = f"{row['accuracy']:.2f} ± {row['spread']:.2f}"
    (record / "table.md").write_text(text.replace(shown, shown + more, 1))
    sum_anew(record)
    (verdict,) = verify(Store(records))
    assert "table.md has another accuracy for qif" in verdict.problem


@pytest.mark.parametrize("file", ["table.md", "table.csv"])
def test_a_line_that_a_table_has_besides_its_methods_is_noticed(record, records, file):
    lines = (record / file).read_text().splitlines(keepends=True)
    first = next(n for n, line in enumerate(lines) if line.startswith(("| QIF", "qif")))
    more = lines[first].replace("QIF", "ours").replace("qif", "ours")
    (record / file).write_text("".join([*lines[:first], more, *lines[first:]]))
    sum_anew(record)
    (verdict,) = verify(Store(records))
    assert f"{file} has other methods than its rows" in verdict.problem


def test_what_is_unfinished_or_not_of_its_runs_is_refused(compared, records, tmp_path, capsys):
    copy = shutil.copytree(compared, tmp_path / "copy")
    add = ("records", "add", str(copy), "--records", str(records))
    found = json.loads((copy / "comparison.json").read_text())
    change(copy / "comparison.json", ("outcomes",), found["outcomes"][:-1])
    assert run_cli(*add) == 2
    assert "3 of its 4 runs" in capsys.readouterr().err
    change(copy / "comparison.json", ("outcomes",), found["outcomes"])
    change(copy / "qif" / "seed-0" / "record.json", ("summary", "test_accuracy"), 0.5)
    assert run_cli(*add) == 2
    assert "noted the accuracy 0.5" in capsys.readouterr().err
    change(copy / "qif" / "seed-0" / "record.json", ("environment", "source"), "0" * 64)
    assert run_cli(*add) == 2
    assert "trained with another source" in capsys.readouterr().err
    shutil.copy(compared / "qif/seed-0/record.json", copy / "qif/seed-0/record.json")
    for field, said in (("source", "with another source"), ("device", "on elsewhere and CPU")):
        parts = [found["environment"] | {field: "elsewhere"}]
        change(copy / "qif/seed-0/record.json", ("earlier_environments",), parts)
        assert run_cli(*add) == 2
        assert f"trained {said}" in capsys.readouterr().err
    assert run_cli(*add, "--export", str(tmp_path)) == 2
    assert "leave that out" in capsys.readouterr().err
    assert not list(records.iterdir())
