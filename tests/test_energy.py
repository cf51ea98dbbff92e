from __future__ import annotations

import itertools
from collections import OrderedDict
from decimal import Decimal

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from torch import nn

from quadspike.analysis.energy.counts import synaptic_operations
from quadspike.analysis.energy.paper import agrees, compare_with_paper, implied_rate, paper_table
from quadspike.analysis.energy.report import EnergyCosts, EnergyReport, energy
from quadspike.analysis.energy.table import paper_tables, report_table
from quadspike.data.geometry import GEOMETRIES
from quadspike.errors import QuadspikeError
from quadspike.models import Network, create_model
from quadspike.neurons import Ternary, TrainedTernary
from quadspike.soma import Soma
from tests.conftest import calibrate

PAPER_NETWORKS = {
    ("resnet19", "cifar10"): (4_981_248, 2_214_726_144, 1_605_888),
    ("resnet19", "cifar10-dvs"): (9_880_064, 4_982_966_784, 3_612_928),
    ("vggsnn", "cifar10-dvs"): (4_497_408, 1_359_000_576, 921_600),
    ("resnet34", "imagenet"): (125_490_176, 3_545_747_456, 3_738_112),
}


def network_for(model: str, geometry: str, **options) -> Network:
    shape = GEOMETRIES[geometry]
    return create_model(
        model,
        in_channels=shape.channels,
        num_classes=shape.classes,
        image_size=shape.size,
        **options,
    )


def small_net(timesteps: int = 3, neuron: str = "qif") -> Network:
    return Network(
        OrderedDict(
            conv=nn.Conv2d(1, 4, 3, padding=1, bias=False),
            soma=Soma(4, neuron),
            deep=nn.Conv2d(4, 6, 3, stride=2, padding=1, bias=False),
            deep_soma=Soma(6, neuron),
            flatten=nn.Flatten(),
            classifier=nn.Linear(96, 10),
        ),
        timesteps=timesteps,
    )


def row_of(report: EnergyReport, layer: str):
    return next(row for row in report.rows if row.layer == layer)


# -- counts --------------------------------------------------------------------------------


@pytest.mark.parametrize(("model", "geometry"), PAPER_NETWORKS)
def test_counts_of_the_papers_networks(model, geometry):
    report = energy(network_for(model, geometry), geometry, timesteps=1, rates=0.1)
    counts = report.macs_per_step, report.acs_per_step, report.neurons
    assert counts == PAPER_NETWORKS[model, geometry]
    assert report.uncounted == ()


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


# -- exact operations ----------------------------------------------------------------------


def brute_force_conv(layer: nn.Conv2d, x: torch.Tensor) -> float:
    """Every output asks every tap of its kernel, and counts those inside the image."""
    samples, channels, height, width = x.shape
    (kh, kw), (sh, sw), (ph, pw), (dh, dw) = (
        layer.kernel_size,
        layer.stride,
        layer.padding,
        layer.dilation,
    )
    out_h = (height + 2 * ph - dh * (kh - 1) - 1) // sh + 1
    out_w = (width + 2 * pw - dw * (kw - 1) - 1) // sw + 1
    per_group_in, per_group_out = channels // layer.groups, layer.out_channels // layer.groups
    total = 0.0
    for n, o, i, j in itertools.product(
        range(samples), range(layer.out_channels), range(out_h), range(out_w)
    ):
        first = o // per_group_out * per_group_in
        for c, a, b in itertools.product(range(per_group_in), range(kh), range(kw)):
            row, column = i * sh - ph + a * dh, j * sw - pw + b * dw
            if 0 <= row < height and 0 <= column < width:
                total += abs(float(x[n, first + c, row, column]))
    return total


def spikes(*shape: int, largest: int = 1) -> torch.Tensor:
    return torch.randint(0, largest + 1, shape).float()


@pytest.mark.parametrize(
    "options",
    [
        {"kernel_size": 3},
        {"kernel_size": 3, "padding": 1},
        {"kernel_size": 3, "padding": 1, "stride": 2},
        {"kernel_size": 1},
        {"kernel_size": 1, "stride": 2},
        {"kernel_size": 3, "padding": 1, "groups": 2},
        {"kernel_size": (3, 2), "padding": (2, 0), "stride": (1, 2), "dilation": (2, 1)},
    ],
    ids=str,
)
@pytest.mark.parametrize("largest", [1, 3], ids=["spikes", "integers"])
def test_exact_operations_of_convolutions(options, largest):
    layer = nn.Conv2d(4, 6, **options)
    x = spikes(2, 4, 5, 6, largest=largest)
    assert synaptic_operations(layer, x) == brute_force_conv(layer, x)


def test_negative_values_count_by_their_size():
    layer = nn.Conv2d(1, 2, 3, padding=1)
    x = torch.randint(-2, 3, (2, 1, 4, 4)).float()
    assert synaptic_operations(layer, x) == brute_force_conv(layer, x)


def test_exact_operations_of_sequences_and_vectors():
    x = spikes(2, 3, 7)
    wide = nn.Conv2d(3, 4, (1, 3), padding=(0, 1), stride=(1, 2))
    narrow = nn.Conv1d(3, 4, 3, padding=1, stride=2)
    assert synaptic_operations(narrow, x) == brute_force_conv(wide, x[:, :, None])
    vector = spikes(5, 7, largest=2)
    assert synaptic_operations(nn.Linear(7, 3), vector) == sum(
        abs(float(value)) for value in vector.flatten() for _ in range(3)
    )


def test_same_padding_reaches_what_explicit_padding_reaches():
    x = spikes(1, 2, 5, 5)
    same, explicit = nn.Conv2d(2, 3, 3, padding="same"), nn.Conv2d(2, 3, 3, padding=1)
    assert synaptic_operations(same, x) == synaptic_operations(explicit, x)


@settings(deadline=None, max_examples=60)
@given(
    kernel=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    stride=st.integers(1, 3),
    padding=st.integers(0, 2),
    dilation=st.integers(1, 2),
    groups=st.sampled_from([1, 2]),
    size=st.tuples(st.integers(5, 7), st.integers(5, 7)),
)
def test_full_activity_never_exceeds_the_nominal_count(
    kernel, stride, padding, dilation, groups, size
):
    layer = nn.Conv2d(2, 2, kernel, stride, padding, dilation, groups)
    x = torch.ones(1, 2, *size)
    with torch.no_grad():
        nominal = layer.weight.numel() * layer(x)[0, 0].numel()
    exact = synaptic_operations(layer, x)
    assert exact == brute_force_conv(layer, x)
    assert exact <= nominal
    if padding == 0:
        assert exact == nominal


def test_measured_report_follows_the_spikes_of_the_run():
    network, x = small_net(), torch.randn(2, 1, 8, 8)
    calibrate(network, x)
    report = energy(network, (1, 8, 8), timesteps=3, inputs=x)
    with torch.no_grad():
        _, seen = network(x, taps="spikes", timesteps=3)
    first, second = (seen[name]["spikes"].flatten(0, 1) for name in ("soma", "deep_soma"))
    deep, classifier, stem = (row_of(report, name) for name in ("deep", "classifier", "conv"))
    assert report.source == "measured"
    assert first.sum() > 0
    assert deep.rate == pytest.approx(first.mean().item())
    assert classifier.rate == pytest.approx(second.mean().item())
    assert deep.exact_ops == brute_force_conv(network.deep, first) / 2
    assert classifier.exact_ops == second.sum().item() * 10 / 2
    assert stem.exact_ops == brute_force_conv(network.conv, torch.ones(1, 1, 8, 8))
    assert deep.exact_energy_pj == pytest.approx(deep.exact_ops * 0.9)
    # Without borders, the rate times the count is the exact number.
    assert classifier.energy_pj == pytest.approx(classifier.exact_energy_pj)
    assert report.exact is not None
    assert report.exact.overhead_mj == pytest.approx(report.estimate.overhead_mj)
    exact_pj = sum(row.exact_energy_pj for row in report.rows)
    assert report.exact.qif_mj == pytest.approx(exact_pj * 1e-9)


def test_stem_every_step_holds_for_exact_operations_too():
    x = torch.randn(2, 1, 8, 8)
    once = energy(small_net(), (1, 8, 8), timesteps=3, inputs=x)
    each = energy(small_net(), (1, 8, 8), timesteps=3, inputs=x, stem_every_step=True)
    assert row_of(each, "conv").exact_ops == 3 * row_of(once, "conv").exact_ops


def test_measured_rates_can_be_stated_again_and_batches_add_up():
    network, x = calibrate(small_net(), torch.randn(8, 1, 8, 8)), torch.randn(4, 1, 8, 8)
    whole = energy(network, (1, 8, 8), inputs=x)
    parts = energy(network, (1, 8, 8), inputs=(part for part in x.split((1, 3))))
    again = energy(network, (1, 8, 8), rates=whole.rates)
    assert parts.rates == pytest.approx(whole.rates)
    assert parts.exact == pytest.approx(whole.exact)
    assert again.estimate == pytest.approx(whole.estimate)


def test_average_pooling_makes_graded_inputs():
    network = Network(
        OrderedDict(
            conv=nn.Conv2d(1, 4, 3, padding=1),
            soma=Soma(4),
            pool=nn.AvgPool2d(2),
            deep=nn.Conv2d(4, 6, 3, padding=1),
        ),
        timesteps=2,
    )
    x = torch.randn(2, 1, 8, 8)
    calibrate(network, x)
    report = energy(network, (1, 8, 8), inputs=x)
    with torch.no_grad():
        _, seen = network(x, taps="spikes")
    pooled = network.pool(seen["soma"]["spikes"].flatten(0, 1))
    deep = row_of(report, "deep")
    assert deep.flags == ("graded",)
    assert deep.rate == pytest.approx(pooled.mean().item())
    assert deep.exact_ops == brute_force_conv(network.deep, (pooled != 0).float()) / 2
    assert deep.exact_energy_pj == pytest.approx(deep.exact_ops * 4.6)


@pytest.mark.parametrize("alpha", [0.7, torch.linspace(0.5, 1.5, 4)])
@pytest.mark.parametrize("between", [nn.Identity, nn.Flatten])
def test_weights_take_an_emitted_number_in(alpha, between):
    reports = []
    x = torch.randn(2, 1, 8, 8)
    for neuron in (Ternary(), TrainedTernary(alpha=alpha)):
        torch.manual_seed(1)
        deep = nn.Conv2d(4, 6, 3) if between is nn.Identity else nn.Linear(4 * 64, 6)
        parts = {"conv": nn.Conv2d(1, 4, 3, padding=1), "soma": Soma(4, neuron)}
        network = Network(OrderedDict(**parts, between=between(), deep=deep), timesteps=2)
        calibrate(network, x)
        reports.append(row_of(energy(network, (1, 8, 8), inputs=x), "deep"))
    assert reports[0] == reports[1]
    assert reports[0].exact_ops > 0


@pytest.mark.parametrize(
    ("residual", "summed"), [("fire-then-sum", True), ("sum-then-fire", False)]
)
def test_sums_of_spikes_are_flagged_as_integers(residual, summed):
    network = create_model("resnet8", residual=residual, timesteps=2)
    x = torch.randn(2, 3, 32, 32)
    calibrate(network, x)
    report = energy(network, "cifar10", inputs=x)
    assert ("integer" in row_of(report, "layer2.0.first.synapse").flags) is summed
    assert "graded" in row_of(report, "classifier").flags


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


# -- the paper's table ---------------------------------------------------------------------


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
        ("VGGSNN", "CIFAR-10 DVS", 10, "1.312", "0.042"),
        ("ResNet-19", "CIFAR-10 DVS", 10, "11.998", "0.177"),
    ]
    shares = [str(r.overhead_percent) for r in paper_table()]
    assert shares == ["1.20", "1.21", "0.94", "0.96", "1.07", "3.23", "1.48"]


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
        ((1, 9, 20), {"rates": 0.1}, "cannot run on input .1, 1, 9, 20."),
        ("cifar100", {"rates": 0.1}, "1 input channels"),
        ((1, 8, 8), {"inputs": torch.randn(2, 1, 9, 9)}, r"tensors \[B, 1, 8, 8\], got \(2, 1, 9"),
        ((3, 1, 8, 8), {"inputs": torch.randn(2, 1, 1, 8, 8)}, r"\[3, B, 1, 8, 8\]"),
        ((1, 8, 8), {"inputs": [(torch.randn(2, 1, 8, 8), 0)]}, "got tuple"),
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
