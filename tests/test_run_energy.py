"""The energy of a trained network: measured on test images, and beside the paper's figures."""

from __future__ import annotations

import json
from decimal import Decimal

import numpy as np
import pytest
import torch

from quadspike import create_model
from quadspike.analysis.energy import beside_table, energy, paper_table
from quadspike.analysis.energy.beside import BesidePaper
from quadspike.analysis.energy.paper import NAMES, PaperRow
from quadspike.analysis.energy.report import COSTS_45NM, EnergyCosts
from quadspike.recipes import create_recipe
from quadspike.records import export, load_export
from quadspike.records.energy import run_energy
from quadspike.training import train
from quadspike.training.datasets import make_data
from quadspike.training.distributed import Workers
from quadspike.training.folder import RunFolder
from quadspike.training.samples import first_samples
from tests.conftest import calibrate, run_cli
from tests.energy_networks import network_for


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")  # paths of temporary folders are long


def test_the_first_samples_are_cut_from_batches():
    recipe = create_recipe("digits-mlp", batch_size=30)
    test = make_data(recipe, None, torch.device("cpu"), Workers()).test
    whole = torch.cat([batch.inputs for batch in test.epoch()])
    parts = [batch.inputs for batch in first_samples(test, 40)]
    assert [len(part) for part in parts] == [30, 10]
    assert torch.equal(torch.cat(parts), whole[:40])
    assert sum(len(batch.labels) for batch in first_samples(test, 10**6)) == len(whole)


def command(*arguments, out):
    assert run_cli("energy", *map(str, arguments), "--json", str(out)) == 0
    return json.loads(out.read_text())


def images(run, count):
    data = make_data(RunFolder(run).read_recipe(), None, torch.device("cpu"), Workers())
    return next(first_samples(data.test, count)).inputs


def test_a_folder_costs_what_its_weights_cost_on_the_same_images(finished, tmp_path, capsys):
    np.save(tmp_path / "x.npy", images(finished, 50).numpy())
    run = command(finished, "--samples", 50, "--device", "cpu", out=tmp_path / "run.json")
    printed = capsys.readouterr().out
    weights = ("--weights", finished / "last.safetensors", "--inputs", tmp_path / "x.npy")
    same = command(*weights, out=tmp_path / "weights.json")
    for name in ("layers", "estimate", "exact", "ann_mj", "firing_rate", "timesteps"):
        assert run[name] == same[name]
    assert (run["samples"], run["rates"], run["paper"]) == (50, "measured", None)
    assert "measured on 50 test images" in printed
    assert f"{run['layers'][1]['rate']:.4f}" in printed
    assert "QIF over LIF, MACs" in printed


def test_it_is_what_the_run_s_summary_says(finished):
    record = json.loads((finished / "record.json").read_text())
    found = run_energy(finished, device="cpu")
    assert found.weights == record["weights"]["last.safetensors"]
    assert found.report.exact.energy_mj == record["summary"]["energy_mj"]
    assert found.report.firing_rate == pytest.approx(record["summary"]["firing_rate"])
    assert [row._asdict() | {"flags": list(row.flags)} for row in found.report.rows] == record[
        "energy"
    ]


def test_it_is_so_with_small_batches_too(tmp_path):
    recipe = create_recipe("digits-mlp", epochs=1, batch_size=48)
    summary = train(recipe, out=tmp_path, device="cpu").summary
    found = run_energy(tmp_path, device="cpu")
    assert found.samples == 128
    assert found.report.exact.energy_mj == pytest.approx(summary["energy_mj"])
    assert found.report.firing_rate == pytest.approx(summary["firing_rate"])


def test_exported_weights(finished, tmp_path):
    index = export(finished, tmp_path / "weights")
    found = run_energy(tmp_path / "weights", samples=32, device="cpu")
    x = images(finished, 32)
    assert found.weights == index["sha256"]
    assert found.report == energy(load_export(tmp_path / "weights"), (1, 8, 8), inputs=x)


def test_a_soma_s_rate_is_of_its_own_spikes():
    model = create_model("resnet8", in_channels=1, timesteps=2, seed=0)
    x = torch.randn(6, 1, 8, 8)
    calibrate(model, x)
    report = energy(model, (1, 8, 8), inputs=(part for part in x.split((2, 4))))
    with torch.no_grad():
        _, seen = model(x, taps="rate")
    own = {row.layer: row.rate for row in report.rows if row.neurons}
    assert own == pytest.approx({label: float(s["rate"].mean()) for label, s in seen.items()})
    assert not own.keys() & report.rates.keys()
    neurons = [(row.neurons, row.rate) for row in report.rows if row.neurons]
    assert report.firing_rate == pytest.approx(
        sum(n * rate for n, rate in neurons) / report.neurons
    )
    assert report.overhead_macs == 2 * report.neurons


def test_rates_of_recordings_in_unequal_batches():
    model = create_model("cnn", in_channels=2, timesteps=3, seed=0)
    clips = torch.randn(3, 6, 2, 8, 8) * torch.linspace(0.1, 2, 6)[:, None, None, None]
    calibrate(model, clips)
    parts, whole = (
        energy(model, (3, 2, 8, 8), inputs=iter(batches))
        for batches in (clips.split((1, 5), dim=1), [clips])
    )
    rates = [{row.layer: row.rate for row in report.rows} for report in (parts, whole)]
    assert rates[0] == pytest.approx(rates[1])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--dataset", "digits"), "leave out --dataset"),
        (("--timesteps", "2"), "leave out --dataset, --timesteps"),
        (("--rate", "0.1"), "its rates are measured"),
        (("--samples", "0"), "samples must be"),
    ],
)
def test_what_a_folder_refuses(finished, capsys, options, words):
    assert run_cli("energy", str(finished), *options) == 2
    assert words in capsys.readouterr().err


def test_folders_that_hold_no_weights(run, tmp_path, capsys):
    (run / "last.safetensors").unlink()
    assert run_cli("energy", str(run)) == 2
    assert "has no last.safetensors" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert run_cli("energy", str(tmp_path / "empty")) == 2
    assert "is no run" in capsys.readouterr().err
    assert run_cli("energy", "--paper", "--json", str(tmp_path / "x.json")) == 2
    assert "leave --paper out" in capsys.readouterr().err


def stated(row: PaperRow, rate: float, neuron: str = "qif", **options):
    network = network_for(row.model, row.geometry, neuron=neuron)
    return energy(network, row.geometry, timesteps=row.timesteps, rates=rate, **options)


@pytest.mark.parametrize("index", [0, 5])
def test_at_the_implied_rate_the_paper_s_account_gives_the_printed_energy(index):
    row = paper_table()[index]
    implied = BesidePaper.of(stated(row, 0.1), row.model, row.geometry).implied_rate
    for stem in (False, True):
        report = stated(row, implied, stem_every_step=stem)
        beside = BesidePaper.of(report, row.model, row.geometry)
        assert beside.energy_mj == pytest.approx(float(row.energy_mj))
        assert beside.numbers()["ours"]["rate"] == pytest.approx(implied)


def test_other_neurons_are_named_and_qif_is_what_the_overhead_is_a_share_of():
    row = paper_table()[5]
    qif, lif = (
        BesidePaper.of(stated(row, 0.1, neuron), row.model, row.geometry)
        for neuron in ("qif", "lif")
    )
    assert qif.energy_mj - lif.energy_mj == pytest.approx(qif.overhead_mj)
    assert lif.overhead_percent == pytest.approx(qif.overhead_percent)
    assert "these lif" in lif.sentence
    assert "these" not in qif.sentence


def test_only_the_paper_s_settings_have_such_a_table():
    row = paper_table()[5]
    report = stated(row, 0.1)
    assert BesidePaper.of(report, row.model, "cifar10") is None
    for changed in ({"stem_width": 128}, {"residual": "sum-then-fire", "shortcut_neuron": False}):
        network = create_model("resnet19", seed=0, **changed)
        other = energy(network, "cifar10", timesteps=2, rates=0.1)
        assert BesidePaper.of(other, "resnet19", "cifar10") is None
    dear = stated(row, 0.1, costs=EnergyCosts(COSTS_45NM.mac, 1.0))
    assert BesidePaper.of(dear, row.model, row.geometry) is None


def test_the_command_puts_a_run_beside_the_paper(finished, tmp_path, capsys, monkeypatch):
    """As if the paper had trained these digits."""
    printed = ("8.70e3", "1.77e4", "0.001", "0.002", "3.00")
    row = PaperRow("mlp", "digits", 2, *map(Decimal, printed))
    monkeypatch.setattr("quadspike.analysis.energy.beside.paper_table", lambda: [row])
    monkeypatch.setitem(NAMES, "mlp", "Perceptron")
    monkeypatch.setitem(NAMES, "digits", "Digits")
    found = command(finished, "--samples", 8, "--device", "cpu", out=tmp_path / "run.json")
    out = capsys.readouterr().out
    assert "The paper's account: Perceptron, Digits, T = 2" in out
    assert "0.002 mJ (3.00 %)" in out
    ours = found["paper"]["ours"]
    assert f"Measured, an input fires {ours['rate']:.4f} times a step" in out
    assert (ours["macs"], ours["acs"]) == (found["macs_per_step"], found["acs_per_step"])
    stem = 2 * found["layers"][0]["macs"] * 4.6e-9
    rest = sum(layer["energy_pj"] for layer in found["layers"][1:]) * 1e-9
    assert ours["energy_mj"] == pytest.approx(stem + rest)


def test_figures_the_paper_contradicts_are_marked():
    row = paper_table()[0]
    beside = BesidePaper.of(stated(row, 0.1), row.model, row.geometry)
    assert "one more MAC per neuron" in beside.notes["overhead_mj"]
    assert "acs" not in beside.notes
    assert beside_table(beside)
