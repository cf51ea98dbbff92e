"""Synaptic operations that really occur, counted spike by spike."""

from __future__ import annotations

import itertools
from collections import OrderedDict

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from quadspike import QIF, QuadspikeError, Timed
from quadspike.analysis.energy.counts import synaptic_operations
from quadspike.analysis.energy.report import energy
from quadspike.models import Block, Network, create_model
from quadspike.models.parts import Build
from quadspike.models.pool import AveragePool, MaxPool
from quadspike.models.resnet import ResidualForm
from quadspike.neurons import Ternary, TrainedTernary
from quadspike.soma import Soma
from tests.conftest import calibrate
from tests.energy_networks import row_of, small_net


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


PAIR = st.tuples(st.integers(1, 2), st.integers(1, 2))


@settings(deadline=None, max_examples=80)
@given(
    kernel=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    stride=PAIR,
    padding=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    dilation=PAIR,
    groups=st.sampled_from([1, 2]),
    size=st.tuples(st.integers(5, 7), st.integers(5, 7)),
)
def test_exact_operations_of_convolutions(kernel, stride, padding, dilation, groups, size):
    """Of numbers with a sign by their size; of full activity no more than the nominal count."""
    layer = nn.Conv2d(2, 4, kernel, stride, padding, dilation, groups)
    x = torch.randint(-2, 3, (1, 2, *size)).float()
    assert synaptic_operations(layer, x) == brute_force_conv(layer, x)
    with torch.no_grad():
        nominal = layer.weight.numel() * layer(x)[0, 0].numel()
    exact = synaptic_operations(layer, torch.ones_like(x))
    assert exact <= nominal
    if padding == (0, 0):
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


def behind(between: nn.Module, neuron: Ternary):
    """The bill of a synapse that reads what `neuron` emits through `between`."""
    torch.manual_seed(1)
    x = torch.randn(2, 3, 8, 8)
    deep = nn.Linear(4 * 64, 6) if isinstance(between, nn.Flatten) else nn.Conv2d(4, 6, 3)
    parts = {"conv": nn.Conv2d(3, 4, 3, padding=1), "soma": Soma(4, neuron)}
    network = Network(OrderedDict(**parts, between=between, deep=deep), timesteps=2)
    calibrate(network, x)
    return row_of(energy(network, (3, 8, 8), inputs=x), "deep")


POOLS = (AveragePool(2), MaxPool(2), nn.AdaptiveAvgPool2d(3))


@pytest.mark.parametrize("alpha", [0.7, torch.linspace(0.5, 1.5, 4)])
@pytest.mark.parametrize("between", [nn.Identity(), nn.Flatten(), *POOLS], ids=str)
def test_weights_take_an_emitted_number_in(alpha, between):
    plain, scaled = behind(between, Ternary()), behind(between, TrainedTernary(alpha=alpha))
    assert plain == scaled
    assert plain.exact_ops > 0


@pytest.mark.parametrize(
    "pool",
    [
        nn.AvgPool1d(2),
        nn.MaxPool1d(2),
        nn.AdaptiveAvgPool1d(3),
        nn.AdaptiveMaxPool1d(3),
        nn.AdaptiveMaxPool2d((1, 3)),
    ],
    ids=str,
)
def test_weights_take_an_emitted_number_in_through_any_pool(pool):
    flat = isinstance(pool, nn.AdaptiveMaxPool2d)
    conv, shape = (nn.Conv2d, (3, 1, 8)) if flat else (nn.Conv1d, (3, 8))
    x, rows = torch.randn(2, *shape), []
    for neuron in (Ternary(), TrainedTernary(alpha=0.7)):
        torch.manual_seed(1)
        parts = {
            "conv": conv(3, 4, 1),
            "soma": Soma(4, neuron),
            "pool": pool,
            "deep": conv(4, 6, 1),
        }
        network = Network(OrderedDict(parts), timesteps=2)
        calibrate(network, x)
        rows.append(row_of(energy(network, shape, inputs=x), "deep"))
    assert rows[0] == rows[1]
    assert rows[0].exact_ops > 0


def test_a_maximum_of_what_was_turned_round_is_no_multiple_of_the_spikes_maximum():
    average, largest = (behind(pool, TrainedTernary(alpha=-0.5)) for pool in POOLS[:2])
    assert average == behind(POOLS[0], Ternary())
    assert "graded" in largest.flags


class Part(nn.Module):
    """Some channels, height and width exchanged."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, 1:3].transpose(2, 3)


@pytest.mark.parametrize("channels_last", [False, True])
def test_a_part_of_what_is_emitted_counts_as_its_spikes(channels_last):
    reports = []
    x = torch.randn(2, 3, 8, 6)
    for neuron in (Ternary(), TrainedTernary(alpha=torch.linspace(0.5, 1.5, 4))):
        torch.manual_seed(1)
        parts = {"conv": nn.Conv2d(3, 4, 3), "soma": Soma(4, neuron), "part": Part()}
        network = Network(OrderedDict(**parts, deep=nn.Conv2d(2, 5, (3, 2))), timesteps=2)
        if channels_last:
            network = network.to(memory_format=torch.channels_last)
        calibrate(network, x)
        reports.append(row_of(energy(network, (3, 8, 6), inputs=x), "deep"))
    assert reports[0] == reports[1]
    assert reports[0].exact_ops > 0


@pytest.mark.parametrize("neuron", [Ternary(), TrainedTernary(), TrainedTernary(alpha=0)], ids=str)
def test_what_is_no_number_is_refused_and_worth_nothing_is_no_spike(neuron):
    parts = {"first": nn.Linear(6, 4), "soma": Soma(4, neuron, norm=None), "last": nn.Linear(4, 2)}
    network, x = Network(OrderedDict(parts), timesteps=2), torch.randn(3, 6)
    worth = getattr(neuron, "alpha", 1.0)
    assert (row_of(energy(network, (6,), inputs=9 * x), "last").exact_ops > 0) == (worth != 0)
    nn.init.constant_(network.first.weight, float("nan"))
    with pytest.raises(QuadspikeError, match="'last' received values that are not finite"):
        energy(network, (6,), inputs=x)


def test_spikes_of_a_neuron_that_a_module_of_one_s_own_runs_are_no_currents():
    class Bare(Timed):
        def __init__(self):
            super().__init__()
            self.neuron, self.last = QIF(), nn.Linear(4, 2)

        def forward(self, x, call):
            return self.last(self.neuron(call.unflatten(x)).flatten(0, 1))

    network = Network(nn.Linear(6, 4), Soma(4), nn.Linear(4, 4), Bare())
    report = energy(network, (6,), rates=0.1)
    assert [row.layer for row in report.rows if row.acs] == ["2", "3.last"]


def test_an_image_that_is_read_again_is_still_real():
    block = Block(Build(), 3, 4, 1, ResidualForm())
    network = Network(OrderedDict(block=block), timesteps=2, input_rank=4)
    x = torch.randn(2, 3, 8, 8)
    calibrate(network, x)
    shortcut = row_of(energy(network, (3, 8, 8), inputs=x), "block.shortcut.synapse")
    assert (shortcut.macs, shortcut.acs, shortcut.rate) == (3 * 4 * 64, 0, None)
    assert "real" in shortcut.flags


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
