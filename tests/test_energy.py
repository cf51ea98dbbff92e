"""Operations, their energy, and the tables of it."""

from __future__ import annotations

import pytest
import torch
from rich.console import Console
from torch import nn

from quadspike.analysis.energy.report import EnergyCosts, energy
from quadspike.analysis.energy.table import paper_tables, report_table
from quadspike.errors import QuadspikeError
from quadspike.models import Network, create_model
from quadspike.soma import Soma
from tests.conftest import calibrate
from tests.energy_networks import network_for, row_of, small_net

# -- counts --------------------------------------------------------------------------------


def test_the_place_of_the_residual_changes_no_count():
    network = network_for("resnet19", "cifar10", residual="sum-then-fire")
    report = energy(network, "cifar10", timesteps=1, rates=0.1)
    assert report == energy(network_for("resnet19", "cifar10"), "cifar10", timesteps=1, rates=0.1)


def test_lif_costs_one_mac_a_neuron():
    qif, lif = (energy(small_net(neuron=n), (1, 8, 8), rates=0.2) for n in ("qif", "lif"))
    assert qif.macs_per_step - lif.macs_per_step == qif.neurons == 4 * 64 + 6 * 16
    assert lif.estimate.energy_mj == pytest.approx(lif.estimate.lif_mj)
    assert qif.estimate.energy_mj == pytest.approx(qif.estimate.qif_mj)
    assert lif.estimate.qif_mj == pytest.approx(qif.estimate.qif_mj)


def test_formula_by_hand():
    rates = {"deep": 0.25, "classifier": 0.5}
    report = energy(small_net(), (1, 8, 8), timesteps=3, rates=rates)
    stem, deep, classifier = 9 * 4 * 64, 9 * 4 * 6 * 16, 96 * 10
    neurons = 4 * 64 + 6 * 16
    pj = stem * 4.6 + 3 * (0.9 * (0.25 * deep + 0.5 * classifier) + 4.6 * 2 * neurons)
    assert report.source == "stated"
    assert report.rates == rates
    assert report.exact is None
    assert report.estimate.qif_mj == pytest.approx(pj * 1e-9)
    assert report.estimate.overhead_mj == pytest.approx(3 * neurons * 4.6e-9)
    assert report.estimate.overhead_share == pytest.approx(3 * neurons * 4.6 / pj)
    assert report.ann_mj == pytest.approx((stem + deep + classifier) * 4.6e-9)
    assert [row.kind for row in report.rows] == ["conv", "qif", "conv", "qif", "linear"]


def test_costs_are_settable():
    report = energy(small_net(), (1, 8, 8), rates=0.0, costs=EnergyCosts(mac=1.0, ac=0.1))
    assert report.ann_mj == pytest.approx((2304 + 3456 + 960) * 1e-9)


def test_the_stem_of_a_static_image_is_billed_once_unless_asked():
    once = energy(small_net(), (1, 8, 8), timesteps=3, rates=0.1)
    each = energy(small_net(), (1, 8, 8), timesteps=3, rates=0.1, stem_every_step=True)
    assert row_of(once, "conv").flags == ("real", "once")
    assert row_of(each, "conv").flags == ("real",)
    assert row_of(each, "conv").energy_pj == pytest.approx(3 * row_of(once, "conv").energy_pj)
    assert each.macs_per_step == once.macs_per_step
    assert row_of(each, "deep") == row_of(once, "deep")


def test_the_stem_of_a_sequence_runs_at_every_step():
    static = energy(small_net(), (1, 8, 8), timesteps=3, rates=0.1, stem_every_step=True)
    sequence = energy(small_net(), (3, 1, 8, 8), rates=0.1)
    assert sequence.rows == static.rows


def test_every_synapse_before_the_first_soma_multiplies():
    network = Network(nn.Linear(4, 5), nn.Linear(5, 6), Soma(6), nn.Linear(6, 2))
    report = energy(network, (4,), rates=1.0)
    assert [row.macs for row in report.rows] == [20, 30, 12, 0]
    assert [row.acs for row in report.rows] == [0, 0, 0, 12]


def test_a_synapse_behind_another_multiplies():
    """No neuron stands between them, so that it reads currents, which are no spikes."""
    depthwise = nn.Conv2d(4, 4, 3, padding=1, groups=4)
    between = nn.BatchNorm2d(4), nn.AvgPool2d(2)
    head = nn.Flatten(), nn.Linear(6 * 16, 5), nn.ReLU(), nn.Linear(5, 2)
    body = nn.Conv2d(1, 4, 3, padding=1), Soma(4), depthwise, *between, nn.Conv2d(4, 6, 1), Soma(6)
    network, x = Network(*body, *head, timesteps=3), torch.randn(2, 1, 8, 8)
    calibrate(network, x)
    for report in (energy(network, (1, 8, 8), rates=0.1), energy(network, (1, 8, 8), inputs=x)):
        synapses = {row.layer: row for row in report.rows if not row.neurons}
        assert [name for name, row in synapses.items() if row.acs] == ["2", "8"]
        assert {name: row.flags for name, row in synapses.items() if row.macs} == {
            "0": ("real", "once"),
            "5": ("real",),
            "10": ("real",),
        }
        assert synapses["5"].energy_pj == pytest.approx(3 * 4 * 6 * 16 * 4.6)
        assert report.rates.keys() == {"2", "8"}
    assert synapses["5"].exact_ops == 3 * 4 * 6 * 16


def test_a_shared_layer_counts_each_time_it_runs():
    shared = nn.Linear(4, 4, bias=False)
    network = Network(nn.Linear(4, 4), Soma(4), shared, Soma(4), shared, timesteps=2)
    report = energy(network, (4,), inputs=torch.randn(3, 4))
    assert [row.layer for row in report.rows if row.acs] == ["2", "2@2"]
    assert report.acs_per_step == 32


def test_folded_network_counts_the_same():
    def build(norm):
        bias = norm is None
        return Network(
            nn.Conv2d(1, 4, 3, bias=bias),
            Soma(4, norm=norm),
            nn.Conv2d(4, 2, 3, bias=bias),
            Soma(2, norm=norm),
        )

    folded, plain = (energy(build(norm), (1, 8, 8), rates=0.3) for norm in (None, "tdbn"))
    assert folded == plain


def test_what_is_not_counted_is_said():
    network = Network(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), Soma(4))
    report = energy(network, (1, 8, 8), rates=0.1)
    assert report.uncounted == ("1 (BatchNorm2d)",)
    assert "BatchNorm2d" in render(report_table(report), 100)


def test_a_factor_of_each_step_has_no_weight_that_takes_it_in():
    network = create_model("cnn", neuron="lif", norm="tebn", timesteps=3)
    report = energy(network, (3, 8, 8), rates=0.1)
    assert report.uncounted == tuple(f"conv{i}.soma.norm (TEBatchNorm)" for i in (1, 2, 3))
    for norm in ("tdbn", "bn", "mpbn"):
        report = energy(create_model("cnn", norm=norm), (3, 8, 8), rates=0.1)
        assert report.uncounted == (), norm


# -- leaving the network alone -------------------------------------------------------------


class Fragile(nn.Module):
    def forward(self, x):
        raise KeyError("broken on purpose")


def hooks_of(network: Network) -> int:
    return sum(len(module._forward_hooks) for module in network.modules())


@pytest.mark.parametrize("broken", [False, True])
def test_modes_hooks_weights_and_random_numbers_are_as_before(broken):
    layers = [nn.Conv2d(1, 4, 3), Soma(4), *[Fragile()] * broken, nn.Conv2d(4, 2, 3)]
    network = Network(*layers)
    network.train()
    network[1].eval()
    modes = [module.training for module in network.modules()]
    weights = {name: value.clone() for name, value in network.state_dict().items()}
    x, random = torch.randn(2, 1, 8, 8), torch.get_rng_state()
    if broken:
        with pytest.raises(KeyError):
            energy(network, (1, 8, 8), inputs=x)
    else:
        energy(network, (1, 8, 8), inputs=x)
    assert [module.training for module in network.modules()] == modes
    assert hooks_of(network) == 0
    assert torch.equal(torch.get_rng_state(), random)
    assert all(torch.equal(value, weights[n]) for n, value in network.state_dict().items())


# -- tables --------------------------------------------------------------------------------


def render(renderable, width: int) -> str:
    console = Console(width=width, no_color=True)
    with console.capture() as captured:
        console.print(renderable)
    return captured.get()


@pytest.mark.parametrize("width", [80, 100, 140])
def test_tables_are_complete_at_every_width(width):
    paper = render(paper_tables(), width)
    assert all(text in paper for text in ("2,214,726,144 ✓", "3,545,747,456 ✗", "0.1662 ✗"))
    network = create_model("resnet8", timesteps=2)
    report = render(
        report_table(energy(network, "cifar10", inputs=torch.randn(1, 3, 32, 32))), width
    )
    assert "layer2.0.shortcut" in report
    assert "exact operations" in report
    assert "…" not in paper + report


# -- mistakes ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("geometry", "options", "message"),
    [
        ("cifar-10", {"rates": 0.1}, "did you mean 'cifar10'"),
        ((1, 8, 8), {}, "neither"),
        ((1, 8, 8), {"rates": 0.1, "inputs": torch.randn(2, 1, 8, 8)}, "both"),
        ((1, 8, 8), {"rates": -0.1}, "must be a number >= 0, got -0.1"),
        ((1, 8, 8), {"rates": float("nan")}, "must be a number >= 0"),
        ((1, 8, 8), {"rates": {"deep": 0.1, "classifier": -1.0}}, "'classifier' must be"),
        ((1, 8, 8), {"rates": {"depe": 0.1}}, "did you mean 'deep'"),
        ((1, 8, 8), {"rates": {"conv": 0.1}}, "unknown spiking layer 'conv'"),
        ((1, 8, 8), {"rates": {"deep": 0.1}}, "no firing rate for classifier"),
        ((1, 8, 8), {"rates": 0.1, "timesteps": 0}, "whole number >= 1, got 0"),
        ((1, 8), {"rates": 0.1}, "3 sizes of one static sample"),
        ((5, 1, 8, 8), {"rates": 0.1, "timesteps": 3}, "first equal to timesteps .3."),
        ((3, 8, 8), {"rates": 0.1}, "takes 1 input channels"),
        ((1, 9, 20), {"rates": 0.1}, "input .1, 1, 9, 20.: layer 'classifier' is for 96"),
        ("cifar100", {"rates": 0.1}, "1 input channels"),
        ((1, 8, 8), {"inputs": torch.randn(2, 1, 9, 9)}, r"\[B, 1, 8, 8\], got \(2, 1, 9, 9\)$"),
        ((3, 1, 8, 8), {"inputs": torch.randn(2, 1, 1, 8, 8)}, r"\[3, B, 1, 8, 8\]"),
        ((1, 8, 8), {"inputs": [(torch.randn(2, 1, 8, 8), 0)]}, "got tuple; of a loader"),
        ((1, 8, 8), {"inputs": []}, "no batch"),
        ((1, 8, 8), {"inputs": torch.full((2, 1, 8, 8), torch.nan)}, "not finite"),
    ],
)
def test_mistakes_are_explained(geometry, options, message):
    with pytest.raises(QuadspikeError, match=message):
        energy(small_net(), geometry, **options)


def test_a_network_for_other_classes_is_refused():
    with pytest.raises(QuadspikeError, match="10 outputs, the data set 100 classes"):
        energy(create_model("resnet8"), "cifar100", rates=0.1)


@pytest.mark.parametrize("costs", [{"mac": 0.0}, {"ac": -1.0}, {"mac": float("inf")}])
def test_costs_must_be_positive(costs):
    with pytest.raises(QuadspikeError, match="must be a number > 0 pJ"):
        EnergyCosts(**costs)
