"""Records of runs: what is taken, what is refused, what is noticed."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Barrier

import pytest

from quadspike import QuadspikeError
from quadspike.json_table import as_table, from_table
from quadspike.records import Repository, Store, record_run, verify
from quadspike.records.add import _first_weights
from quadspike.records.metrics import as_lines, compact
from quadspike.records.runs import METRICS, RECORD, TABLES, read_record
from quadspike.records.source import prove
from quadspike.report import read_run
from quadspike.training import train
from quadspike.training.record import source_fingerprint
from tests.conftest import run_cli
from tests.record_cases import change, commit, git, make_run, sum_anew, tiny


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("run") / "digits-seed0", validation=100)


@pytest.fixture
def run(trained, tmp_path):
    """A copy of the run, to be changed."""
    return Path(shutil.copytree(trained, tmp_path / trained.name))


@pytest.fixture
def record(records, trained):
    """One record of the run."""
    assert run_cli("records", "add", str(trained), "--records", str(records)) == 0
    return records / "runs" / "digits-seed0"


def problems(records: Path) -> list[str]:
    return [verdict.problem for verdict in verify(Store(records)) if verdict.problem]


def test_a_record_is_small_text_and_holds(record, records, trained, capsys):
    assert {path.name for path in record.iterdir()} == {
        "recipe.json",
        "metrics.jsonl",
        "record.json",
        "SHA256SUMS",
    }
    assert sum(path.stat().st_size for path in record.iterdir()) < 20_000
    found = read_record("x", Store(records).read("runs", "digits-seed0"))
    theirs = json.loads((trained / "record.json").read_text())
    assert found.recipe == tiny(validation=100)
    assert found.metrics == compact(theirs["metrics"])
    assert [layer["layer"] for layer in found.content["layers"]] == ["hidden1.soma", "hidden2.soma"]
    assert found.summary["accuracy"] == theirs["metrics"][-1]["test_accuracy"]
    assert found.summary["choices"]["best epoch"] == "100 held-out training samples"
    assert "evaluation" in found.summary["seconds_include"]
    assert found.content["weights"] == theirs["weights"]
    assert str(trained) not in "".join(path.read_text() for path in record.iterdir())
    capsys.readouterr()
    assert run_cli("records", "verify", "--records", str(records)) == 0
    out = capsys.readouterr().out
    assert "runs/digits-seed0 holds: " in out
    assert "1 records, 0 of them fail" in out


def test_a_machine_without_git_is_proven_by_the_source(record, repository):
    content = json.loads((record / "record.json").read_text())
    assert content["environment"]["commit"] is None
    assert content["commit"] == git(repository, "rev-parse", "HEAD")
    assert Repository(repository).fingerprint(content["commit"]) == source_fingerprint()


def test_the_report_reads_a_record(record, trained):
    shown, original = read_run(record), read_run(trained)
    assert shown.record.summary == original.record.summary
    assert [epoch.test_accuracy for epoch in shown.epochs] == [
        epoch.test_accuracy for epoch in original.epochs
    ]
    for ours, theirs in zip(shown.record.layers, original.record.layers, strict=True):
        mine, fine = ours.histogram, theirs.histogram
        assert (mine.low, mine.high, len(mine.counts)) == (fine.low, fine.high, 40)
        assert mine.counts[20] == sum(fine.counts[60:63])


def test_a_record_from_before_rows_were_tables_is_as_good(record, records):
    store, name = Store(records), record.name
    found, shown = read_record(name, store.read("runs", name)), read_run(record)
    assert found.content["format"] == TABLES
    (record / METRICS).write_text(as_lines(found.metrics))
    (record / RECORD).write_text(json.dumps(found.content | {"format": 1}))
    sum_anew(record)
    assert problems(records) == []
    assert read_record(name, store.read("runs", name)).metrics == found.metrics
    assert read_run(record) == shown


def test_adding_twice_is_the_same_and_another_of_that_name_is_refused(
    record, records, trained, run, capsys
):
    again = ("records", "add", str(trained), "--records", str(records))
    assert run_cli(*again) == 0
    assert "is there already, the same" in capsys.readouterr().out
    assert run_cli(*again, "--note", "another") == 2
    assert "holds another record" in capsys.readouterr().err
    assert run_cli(*again, "--name", "study/first", "--note", "chosen by hand") == 0
    assert (records / "runs/study/first/record.json").exists()
    assert problems(records) == []


@pytest.mark.parametrize("name", ["../up", "a/b/c", "A", "", ".hidden", "a b"])
def test_names_that_are_refused(tmp_path, name):
    with pytest.raises(QuadspikeError, match="cannot be called"):
        Store(tmp_path).folder("runs", name)


def epochs(lines, **changes):
    """The lines with the last epoch changed, in both files of a run."""
    return [*lines[:-1], {**lines[-1], **changes}]


@pytest.mark.parametrize(
    ("keys", "value", "said"),
    [
        (("summary", "status"), "stopped", "stopped before its end"),
        (("summary", "test_accuracy"), 0.99, "its summary says test_accuracy 0.99"),
        (("summary", "best_chosen_on"), "test", "best_chosen_on"),
        (("summary", "firing_rate"), 0.5, "its layers give"),
        (("recipe", "lr"), 0.06, "different recipes"),
        (("metrics", 1, "test_accuracy"), 0.99, "different epochs"),
        (("weights", "last.safetensors"), "0" * 64, "last.safetensors is not the file"),
        (("environment", "source"), None, "no commit up to HEAD has its source"),
        (("layers", 0), {}, "it is damaged: KeyError"),
    ],
)
def test_runs_that_do_not_add_up_are_refused(run, records, capsys, keys, value, said):
    change(run / "record.json", keys, value)
    assert run_cli("records", "add", str(run), "--records", str(records)) == 2
    err = capsys.readouterr().err
    assert err.startswith("quadspike: ")
    assert said in err
    assert not list(records.iterdir())


def test_a_run_from_before_a_field_existed_has_its_default(run, records):
    content = json.loads((run / "record.json").read_text())
    del content["recipe"]["decay_all"]
    (run / "record.json").write_text(json.dumps(content))
    assert run_cli("records", "add", str(run), "--records", str(records)) == 0
    assert problems(records) == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"lr": 0.5}, "the recipe gives"),
        ({"step": 11}, "ends at step 11"),
        ({"epoch": 3}, "not of each of them once"),
        ({"test_accuracy": 1.01}, "which is no share"),
        ({"seconds": 0.0}, "before the one before"),
    ],
)
def test_epochs_that_no_run_can_have_had_are_refused(run, repository, changes, said):
    found = json.loads((run / "record.json").read_text())
    lines = epochs(found["metrics"], **changes)
    change(run / "record.json", ("metrics",), lines)
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(QuadspikeError, match=said):
        record_run(run, Repository(repository))


def test_an_unfinished_run_and_no_run_are_refused(run, repository, tmp_path):
    (run / "record.json").unlink()
    with pytest.raises(QuadspikeError, match="not finished; go on with --resume"):
        record_run(run, Repository(repository))
    with pytest.raises(QuadspikeError, match="is no run"):
        record_run(tmp_path / "nowhere", Repository(repository))


def test_weights_may_be_elsewhere_by_then(run, repository):
    for path in run.glob("*.safetensors"):
        path.unlink()
    assert "record.json" in record_run(run, Repository(repository))


def test_first_weights_are_those_the_run_began_with(tmp_path):
    first = tmp_path / "first"
    train(tiny(), out=first, device="cpu")
    weights = first / "last.safetensors"
    before = hashlib.sha256(weights.read_bytes()).hexdigest()
    train(tiny(seed=1), out=tmp_path / "then", init_from=first, device="cpu")
    weights.unlink()
    start = json.loads((tmp_path / "then/recipe.json").read_text())
    assert _first_weights(start) == {"sha256": before}


def test_first_weights_are_named_by_their_fingerprint_and_not_by_their_place(
    run, trained, repository
):
    start = json.loads((run / "recipe.json").read_text())
    (run / "recipe.json").write_text(json.dumps({**start, "init_from": str(trained)}))
    files = record_run(run, Repository(repository))
    weights = json.loads((trained / "record.json").read_text())["weights"]
    found, sha256 = json.loads(files[RECORD]), weights["last.safetensors"]
    assert found["init_from"] == {"sha256": sha256}
    assert found["command"].endswith(f" --init-from {sha256[:8]}.safetensors")
    assert str(trained) not in "".join(files.values())
    (run / "recipe.json").write_text(json.dumps({**start, "init_from": "nowhere"}))
    with pytest.raises(QuadspikeError, match="which is not there to be named"):
        record_run(run, Repository(repository))


def test_a_run_from_weights_with_constants_of_its_own_is_taken(tmp_path, trained, repository):
    run = make_run(tmp_path / "run", neuron_constants={"u_th": 0.6})
    start = json.loads((run / "recipe.json").read_text())
    (run / "recipe.json").write_text(json.dumps({**start, "init_from": str(trained)}))
    found = json.loads(record_run(run, Repository(repository))[RECORD])
    assert " --neuron-constants u_th=0.6 --init-from " in found["command"]


def test_source_that_no_commit_has_or_another_commit_proves_nothing(run, repository, tmp_path):
    first = git(repository, "rev-parse", "HEAD")
    (repository / "quadspike" / "more.py").write_text("1\n")
    second = commit(repository, "more")
    try:
        for noted, clean, said in (
            (first, True, None),
            (second, True, "the source at commit"),
        ):
            change(run / "record.json", ("environment", "commit"), noted)
            change(run / "record.json", ("environment", "clean"), clean)
            if said is None:
                assert record_run(run, Repository(repository))
            else:
                with pytest.raises(QuadspikeError, match=said):
                    record_run(run, Repository(repository))
        gone = commit(repository, "as before", "--allow-empty")
        git(repository, "reset", "-q", "--soft", second)
        for noted, clean, said in (
            (None, None, "made where git was not"),
            (second, False, "made with changes on top"),
            (gone, True, "at commit .* not in the history"),  # amended, and in no other clone
            ("1" * 40, True, "at commit 1111111111, which is not in the history"),
        ):
            change(run / "record.json", ("environment", "commit"), noted)
            change(run / "record.json", ("environment", "clean"), clean)
            found = json.loads(record_run(run, Repository(repository))[RECORD])
            assert found["commit"] == first  # the source that made it, not the newest, nor HEAD's
            other = shutil.copytree(run, tmp_path / f"other-{noted}-{clean}")
            change(other / "record.json", ("environment", "source"), "0" * 64)
            with pytest.raises(QuadspikeError, match=said):
                record_run(other, Repository(repository))
    finally:
        git(repository, "reset", "-q", "--hard", first)
        (repository / "records").mkdir(exist_ok=True)


def test_a_record_is_of_the_commit_that_its_run_noted(record, repository):
    content = json.loads((record / "record.json").read_text())
    first = content["commit"]
    second = commit(repository, "no other source", "--allow-empty")
    noted = {**content["environment"], "commit": second}
    prove({**noted, "clean": False}, first, Repository(repository))
    with pytest.raises(QuadspikeError, match=f"the run noted commit {second}"):
        prove({**noted, "clean": True}, first, Repository(repository))
    git(repository, "reset", "-q", "--soft", first)
    prove({**noted, "clean": True}, first, Repository(repository))


# -- what verify notices ---------------------------------------------------------------------


def test_any_digit_changed_is_noticed(record, records):
    store, name = Store(records), record.name
    tried = 0
    for path in sorted(record.iterdir()):
        text = path.read_text()
        for match in list(re.finditer(r"\d", text))[::3]:
            other = str((int(match.group()) + 1) % 10)
            path.write_text(text[: match.start()] + other + text[match.end() :])
            with pytest.raises(QuadspikeError):
                store.read("runs", name)
            tried += 1
        path.write_text(text)
    assert tried > 350
    assert problems(records) == []


@pytest.mark.parametrize(
    ("keys", "value", "said"),
    [
        (("summary", "accuracy"), 0.9999, "its summary says accuracy"),
        (("summary", "accuracy_of"), "an ensemble", "accuracy_of"),
        (("summary", "test_accuracy"), 0.9999, "test_accuracy"),
        (("summary", "best_test_accuracy"), 0.9999, "best_test_accuracy"),
        (("summary", "best_epoch"), 9, "best_epoch"),
        (("summary", "epochs"), 1, "epochs"),
        (("summary", "seconds"), 9999.0, "took 9999.0 s"),
        (("summary", "seconds_spent_on", "steps"), 0.0, "the parts of its time come to"),
        (("summary", "seconds_spent_on", "evaluation"), -1.0, "is below 0"),
        (("summary", "device"), "a slower one", "device"),
        (("summary", "energy_mj"), 1e-9, "energy_mj"),
        (("commit",), "0" * 40, "not in this repository"),
        (("environment", "source"), "0" * 64, "fingerprint"),
        (("weights",), {}, "damaged"),
        (("weights", "last.safetensors"), "unknown", "64 hexadecimal digits"),
        (("format",), 3, "another format"),
        (("energy",), [], "states an energy"),
        (("parameters",), -5, "-5 parameters"),
        (("summary", "evaluated_epoch"), 1, "evaluated_epoch"),
        (("command",), "quadspike train digits-mlp --lr 0.1", "its command says lr 0.1"),
        (("command",), "quadspike train digits-mlp --seed 7", "its command says seed 7"),
        (("command",), "quadspike train digits-mlp --lr", "its command says lr , its recipe"),
        (("command",), "quadspike train digits-cnn", "its command says model cnn, its recipe mlp"),
        (("command",), "quadspike train digit-mlp", "did you mean 'digits-mlp'"),
        (("command",), "quadspike report digits-mlp", "is none of `quadspike train RECIPE`"),
        (("command",), None, "its command None is none of"),
        (("summary", "choices", "best epoch"), "the test set", "its summary says choices"),
    ],
)
def test_a_forger_who_sums_anew_is_noticed(record, records, capsys, keys, value, said):
    change(record / "record.json", keys, value)
    sum_anew(record)
    capsys.readouterr()
    assert run_cli("records", "verify", "--records", str(records)) == 1
    out = capsys.readouterr().out
    assert "runs/digits-seed0 FAILS: " in out
    assert said in out


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("test_accuracy", 0.99, "0.99 is no share of 359"),
        ("train_loss", float("nan"), "train_loss nan"),
        ("step", 7, "an epoch has 7 steps, the data set gives 5"),
    ],
)
def test_epochs_that_the_data_set_cannot_give_are_noticed(record, records, field, value, said):
    path = record / "metrics.jsonl"
    lines = from_table([json.loads(line) for line in path.read_text().splitlines()])
    lines[0][field] = value
    path.write_text(as_lines(as_table(lines)))
    sum_anew(record)
    assert said in problems(records)[0]


def test_another_seed_than_the_command_s_is_noticed(record, records):
    change(record / "recipe.json", ("recipe", "seed"), 5)
    sum_anew(record)
    assert "its command says seed 0, its recipe 5" in problems(records)[0]


def test_parts_made_with_another_source_are_refused_and_devices_all_named(run, repository):
    def earlier(**changes):
        record = json.loads((run / "record.json").read_text())
        change(run / "record.json", ("earlier_environments",), [record["environment"] | changes])
        return record_run(run, Repository(repository))

    found = json.loads(earlier(device="a slower one")["record.json"])
    assert found["summary"]["device"].startswith("a slower one and CPU, ")
    with pytest.raises(QuadspikeError, match="made with another source"):
        earlier(source="0" * 64)


@pytest.mark.parametrize("name", ["recipe.json", "metrics.jsonl", "record.json"])
def test_a_file_of_something_else_is_damage_and_no_crash(record, records, name):
    (record / name).write_text("[" * 100_000)
    sum_anew(record)
    assert "it is damaged: RecursionError" in problems(records)[0]


def test_a_recipe_that_is_no_longer_valid_is_noticed(record, records):
    change(record / "recipe.json", ("recipe", "neuron"), "qiff")
    sum_anew(record)
    assert "did you mean 'qif'" in problems(records)[0]


@pytest.mark.parametrize("name", ["recipe.json", "metrics.jsonl", "record.json", "SHA256SUMS"])
def test_a_missing_file_is_noticed(record, records, name):
    (record / name).unlink()
    assert "SHA256SUMS" in problems(records)[0]


def test_a_foreign_file_is_noticed(record, records):
    (record / "last.safetensors").write_bytes(b"\xff\xfe")
    assert "cannot be read" in problems(records)[0]
    (record / "last.safetensors").write_text("weights")
    assert "last.safetensors" in problems(records)[0]
    sum_anew(record)
    assert "and no others" in problems(records)[0]


# -- small enough, and the command -----------------------------------------------------------


def test_help_teaches(capsys):
    for command in ("add", "verify", "table", "export", "evaluate"):
        assert run_cli("records", command, "--help") == 0
        assert "usage" in capsys.readouterr().out
    assert run_cli("records", "verfy") == 2
    assert "did you mean 'verify'" in capsys.readouterr().err
    assert run_cli("records", "verify", "--records", "nowhere") == 2
    assert "no folder nowhere; name that of the records by --records" in capsys.readouterr().err


def test_of_two_that_add_at_once_one_is_kept_whole(tmp_path):
    starts = Barrier(2)

    def put(text: str) -> None:
        for number in range(20):
            starts.wait()
            with suppress(QuadspikeError):
                Store(tmp_path).write("runs", f"run-{number}", dict.fromkeys("abc", text * 50_000))

    with ThreadPoolExecutor() as both:
        list(both.map(put, "xy"))
    for number in range(20):
        files = Store(tmp_path).read("runs", f"run-{number}")
        assert len(set(files.values())) == 1
