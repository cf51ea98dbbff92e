"""The list of the fast record: who is in it, by which rule somebody is not, in which order."""

from __future__ import annotations

import pytest

from quadspike import QuadspikeError
from quadspike.records import Store, table
from quadspike.records.fastest import LISTS, why_not
from quadspike.records.groups import read_group
from quadspike.records.store import FASTEST
from tests.conftest import run_cli
from tests.record_cases import put

UNSCORED = "the folded weights of run were not scored on 10,000 images"
BEFOREHAND = "its kernels were compiled beforehand, or nobody counted them"


def enter(store, name, folded, *, workers=1, cuda="13.0", count=10_000, besides=None, **changes):
    """A record of a run whose folded weights have that score."""
    scores = {"accuracy": folded + 0.01, "folded_accuracy": folded, "count": count}
    content = {
        "environment": {"workers": workers, "cuda": cuda, "device": "H200"},
        "export": {"dtype": "bfloat16", "evaluation": scores},
        "kernels": {"compiled": 40, "cached": 0},
        **(besides or {}),
    }
    put(store, name, folded + 0.01, content=content, **changes)


def listed(store) -> dict[str, list[list[str]]]:
    """The rows of each list."""
    text = table(store, FASTEST).replace("\u00a0", " ")
    parts = text.split("\n\n")
    return {
        residual: [
            [cell.strip() for cell in line.strip("|").split(" | ")]
            for line in parts[parts.index(words) + 1].rstrip().splitlines()[2:]
        ]
        for residual, words in LISTS.items()
    }


def test_the_fastest_come_first_and_each_kind_of_network_has_its_list(tmp_path):
    store = Store(tmp_path)
    enter(store, "slow", 0.9600, seconds=500.0)
    enter(store, "speed/fast", 0.9601, seconds=300.25, lr=0.2, device="NVIDIA H100")
    enter(store, "binary", 0.9655, seconds=900.0, residual="sum-then-fire", loss="tet")
    found = listed(store)
    assert [row[0] for row in found["fire-then-sum"]] == ["**5 min 00 s**", "**8 min 20 s**"]
    assert found["fire-then-sum"][0][1:] == [
        "96.01", "1", "cifar10-resnet19, lr = 0.2", "QIF, CE", "400", "NVIDIA H100", "speed/fast"
    ]  # fmt: skip
    (binary,) = found["sum-then-fire"]
    assert binary[1] == "96.55"
    assert binary[4] == "QIF, TET"


def test_every_seed_on_record_counts_also_one_that_missed(tmp_path):
    store = Store(tmp_path)
    for seed, (folded, seconds) in enumerate([(0.9612, 400.0), (0.9595, 420.0), (0.9599, 440.0)]):
        enter(store, f"run-{seed}", folded, seconds=seconds, seed=seed)
    (row,) = listed(store)["fire-then-sum"]
    assert row[:3] == ["**7 min 00 s**", "96.02 ± 0.09", "3"]
    assert row[-1] == "run-0, run-1, run-2"
    enter(store, "run-3", 0.9590, seconds=400.0, seed=3)
    assert listed(store)["fire-then-sum"] == []


def test_a_seed_that_was_not_scored_keeps_its_setting_out(tmp_path):
    store = Store(tmp_path)
    enter(store, "scored", 0.97)
    enter(store, "other", 0.961, lr=0.2)
    enter(store, "unscored", 0.97, seed=1, besides={"export": None})
    assert [row[-1] for row in listed(store)["fire-then-sum"]] == ["other"]


def test_a_run_on_a_full_cache_counts_with_its_accuracy_and_not_with_its_time(tmp_path):
    store = Store(tmp_path)
    for seed, (folded, cached) in enumerate([(0.961, 0), (0.965, 40)]):
        kernels = {"kernels": {"compiled": 40 - cached, "cached": cached}}
        enter(store, f"run-{seed}", folded, seconds=400 - cached, seed=seed, besides=kernels)
    (row,) = listed(store)["fire-then-sum"]
    assert row[:3] == ["**6 min 40 s**", "96.30 ± 0.28", "2"]


def test_a_run_counts_once_by_whatever_names_and_a_seed_by_its_runs(tmp_path):
    store = Store(tmp_path)
    enter(store, "run", 0.961)
    enter(store, "speed/run", 0.961)
    (row,) = listed(store)["fire-then-sum"]
    assert (row[1], row[2], row[-1]) == ("96.10", "1", "run")
    enter(store, "again", 0.963)
    (row,) = listed(store)["fire-then-sum"]
    assert (row[1], row[2]) == ("96.20 ± 0.14", "2 runs of 1")


def test_who_is_not_listed_is_told_why(tmp_path, capsys):
    store = Store(tmp_path)
    enter(store, "good", 0.961)
    enter(store, "low", 0.9599, lr=0.2)
    enter(store, "pilots/short", 0.9, epochs=10, besides={"export": None})
    assert run_cli("records", "table", "fastest", "--records", str(tmp_path)) == 0
    assert capsys.readouterr().err == "low not listed: its folded accuracy is 95.99%\n"


def test_a_record_that_cannot_be_read_is_named(tmp_path):
    enter(Store(tmp_path), "speed/mine", 0.97)
    (tmp_path / "runs/speed/mine/record.json").write_text("{}")
    with pytest.raises(QuadspikeError, match=r"the record speed/mine: its files are not those"):
        table(Store(tmp_path), FASTEST)


def test_without_an_entry_the_list_says_so(tmp_path):
    assert table(Store(tmp_path), FASTEST).count("None on record yet.") == 2


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, ""),
        ({"recipe": "cifar100-resnet19"}, "dataset is cifar100, not cifar10"),
        ({"recipe": "cifar10-resnet8-short"}, "model is resnet8, not resnet19"),
        ({"timesteps": 4}, "timesteps is 4, not 2"),
        ({"stem_width": 128}, "stem_width is 128, not None"),
        ({"neuron": "ternary"}, "its spikes have a sign"),
        ({"neuron": "ternary-trained"}, "its spikes have a sign"),
        ({"workers": 8, "device": "8 x H200"}, "it was trained on 8 x H200, not on one GPU"),
        ({"cuda": None, "device": "CPU"}, "it was trained on CPU, not on one GPU"),
        ({"besides": {"init_from": {"sha256": 8 * "abc"}}}, "it started from weights abcabcab"),
        ({"besides": {"kernels": None}}, BEFOREHAND),
        ({"besides": {"kernels": {"compiled": 40, "cached": 1}}}, BEFOREHAND),
        ({"besides": {"kernels": {"compiled": 0, "cached": 0}}}, BEFOREHAND),
        ({"count": 512}, UNSCORED),
        ({"besides": {"export": None}}, UNSCORED),
        (
            {"besides": {"export": {"evaluation": {"accuracy": 0.97, "count": 10_000}}}},
            UNSCORED,
        ),
    ],
)
def test_each_rule_keeps_its_runs_out(tmp_path, changes, reason):
    store = Store(tmp_path)
    enter(store, "run", 0.97, **changes)
    assert why_not(read_group(store, "")) == reason
    assert bool(listed(store)["fire-then-sum"]) == (not reason)


@pytest.mark.parametrize(
    ("part", "device"),
    [
        ({"workers": 1, "cuda": "13.0", "device": "A100"}, "A100 and H200"),
        ({"workers": 8, "cuda": "13.0", "device": "H200"}, "8 x H200 and H200"),
    ],
)
def test_a_run_in_parts_is_of_one_gpu_in_all_of_them(tmp_path, part, device):
    last = {"workers": 1, "cuda": "13.0", "device": "H200"}
    parts = {"environment": last, "earlier_environments": [part]}
    enter(Store(tmp_path), "run", 0.97, device=device, besides=parts)
    assert why_not(read_group(Store(tmp_path), "")) == (
        f"it was trained on {device}, not on one GPU"
    )
    parts["earlier_environments"] = [last | {"python": "3.11"}]
    enter(Store(tmp_path), "group/run", 0.97, device="H200", besides=parts)
    assert not why_not(read_group(Store(tmp_path), "group"))


def test_of_a_run_on_record_twice_the_scored_one_counts(tmp_path):
    store = Store(tmp_path)
    enter(store, "a/run", 0.961, besides={"export": None})
    enter(store, "run", 0.961)
    enter(store, "z/run", 0.961, besides={"export": None})
    assert [row[-1] for row in listed(store)["fire-then-sum"]] == ["run"]


def test_its_name_is_no_group(tmp_path, capsys):
    assert Store(tmp_path).folder("runs", "fastest-mine/run").name == "run"
    for name in ("fastest", "fastest/mine"):
        with pytest.raises(QuadspikeError, match="the list of the fast record"):
            Store(tmp_path).folder("runs", name)
    assert run_cli("records", "table", "fastest", "--records", str(tmp_path)) == 0
    assert "None on record yet." in capsys.readouterr().out
