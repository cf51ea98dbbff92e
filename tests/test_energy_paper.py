"""Every cell of the paper's energy table."""

from __future__ import annotations

from decimal import Decimal

import pytest

from quadspike.analysis.energy.paper import (
    agrees,
    compare_with_paper,
    count_network,
    implied_rate,
    paper_table,
)
from quadspike.analysis.energy.report import energy
from tests.energy_networks import PAPER_NETWORKS, network_for


@pytest.fixture(scope="module")
def cells():
    return compare_with_paper()


def test_the_papers_rows_are_as_printed():
    rows = [
        (r.network, r.dataset, r.timesteps, *map(str, (r.energy_mj, r.overhead_mj)))
        for r in paper_table()
    ]
    assert rows == [
        ("ResNet-19", "CIFAR-10", 2, "0.633", "0.008"),
        ("ResNet-19", "CIFAR-10", 4, "1.253", "0.015"),
        ("ResNet-19", "CIFAR-100", 2, "0.809", "0.008"),
        ("ResNet-19", "CIFAR-100", 4, "1.578", "0.015"),
        ("ResNet-34", "ImageNet", 4, "6.402", "0.069"),
        ("VGGSNN", "CIFAR10-DVS", 10, "1.312", "0.042"),
        ("ResNet-19", "CIFAR10-DVS", 10, "11.998", "0.177"),
    ]
    shares = [str(r.overhead_percent) for r in paper_table()]
    assert shares == ["1.20", "1.21", "0.94", "0.96", "1.07", "3.23", "1.48"]


@pytest.mark.parametrize(("model", "geometry"), PAPER_NETWORKS)
def test_counts_of_the_papers_networks(model, geometry):
    report = count_network(model, geometry)
    counts = report.macs_per_step, report.acs_per_step, report.neurons
    assert counts == PAPER_NETWORKS[model, geometry]
    assert report.uncounted == ()


def test_every_cell_of_the_papers_table(cells):
    def column(quantity):
        return [(round(c.computed, 4), c.agrees) for c in cells if c.quantity == quantity]

    cifar = (4_981_248, True)
    assert column("macs") == [cifar] * 4 + [
        (125_490_176, True),
        (4_497_408, True),
        (9_880_064, True),
    ]
    assert column("acs") == [
        *[(2_214_726_144, True)] * 2,
        *[(2_214_749_184, True)] * 2,
        (3_545_747_456, False),
        (1_359_000_576, True),
        (4_982_966_784, True),
    ]
    energies = (0.633, 1.253, 0.809, 1.578, 6.402, 1.312, 11.998)
    assert column("energy_mj") == [(value, None) for value in energies]
    rates = (0.1473, 0.1457, 0.1914, 0.1864, 0.3103, 0.0904, 0.2574)
    assert column("rate") == [(rate, None) for rate in rates]
    assert column("overhead_mj") == [
        *[(0.0148, False), (0.0295, False)] * 2,
        (0.0688, True),
        (0.0424, True),
        (0.1662, False),
    ]
    percents = [round(c.computed, 2) for c in cells if c.quantity == "overhead_percent"]
    assert percents == [2.33, 2.36, 1.83, 1.87, 1.07, 3.23, 1.39]


def test_every_disagreement_is_explained(cells):
    wrong = [cell for cell in cells if cell.agrees is False]
    assert len(wrong) == 11
    assert all(cell.note for cell in wrong)
    assert {c.row.network for c in wrong if c.quantity.startswith("overhead")} == {"ResNet-19"}
    (acs,) = (cell for cell in wrong if cell.quantity == "acs")
    assert agrees(acs.row.acs, 3_545_747_456 + 118_013_952)
    assert "3,663,761,408" in acs.note


def test_printed_resnet19_overheads_cannot_be_proportional_to_neurons():
    def bounds(row):
        """The least and the greatest overhead per step that print as they do."""
        for sign in (-1, 1):
            percent = row.overhead_percent + sign * Decimal("0.005")
            total = row.energy_mj + sign * Decimal("0.0005")
            yield float(percent / 100 * total / row.timesteps)

    *cifar, (dvs_low, dvs_high) = (bounds(r) for r in paper_table() if r.model == "resnet19")
    ratios = [(dvs_low / high, dvs_high / low) for low, high in cifar]
    assert round(max(low for low, _ in ratios), 2) == 4.65
    assert round(min(high for _, high in ratios), 2) == 4.71
    neurons = PAPER_NETWORKS["resnet19", "cifar10-dvs"][2], PAPER_NETWORKS["resnet19", "cifar10"][2]
    assert neurons[0] / neurons[1] == pytest.approx(2.25, rel=1e-3)


def test_the_implied_rate_gives_the_printed_energy_back():
    row = paper_table()[5]
    macs, acs, _ = PAPER_NETWORKS["vggsnn", "cifar10-dvs"]
    network = network_for("vggsnn", "cifar10-dvs")
    rate = implied_rate(row, macs, acs)
    report = energy(network, "cifar10-dvs", timesteps=10, rates=rate)
    assert report.estimate.qif_mj == pytest.approx(1.312)
    assert 100 * report.estimate.overhead_share == pytest.approx(3.231, abs=5e-4)
