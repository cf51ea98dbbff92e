from __future__ import annotations

import numpy as np
import pytest
import torch

from quadspike import LIF, QIF, Soma, create_model
from quadspike.analysis.dynamics import regions
from quadspike.analysis.gradients import examine
from quadspike.analysis.membranes import correlation, describe_membranes, histogram, regions_of
from quadspike.analysis.traces import SomaTrace
from quadspike.neurons import Ternary


def seen(neuron, membranes, residual=None, place=None):
    """A soma of one channel that went through these membranes, `[T][B]`."""
    soma = Soma(1, neuron, norm=None, residual=place)
    steps = [torch.tensor(step).view(-1, 1) for step in membranes]
    return SomaTrace(soma, None, steps, residual=residual)


def test_by_hand():
    found = describe_membranes(seen(QIF(), [[-0.2, 0.6, 0.2, 0.5], [0.7, 0.1, 0.9, -1.0]]))
    assert found["rate_by_step"] == [0.5, 0.5]
    assert found["mean"] == pytest.approx(0.225)
    assert found["inside_window"] == 6 / 8  # within [-0.0116, 1.0116]
    assert found["regions"] == {"red": 0.25, "blue": 0.375, "green": 0.375}
    assert found["after_red"] == 0.5  # one of the second step's two spikes
    assert found["temporal_correlation"] == pytest.approx(-1.0)


def test_a_ternary_neuron_fires_at_two_places():
    found = describe_membranes(seen(Ternary(), [[-0.2, 0.6]]))
    assert sorted(found["fires_at"]) == [-found["threshold"], found["threshold"]]
    assert describe_membranes(seen(QIF(), [[-0.2, 0.6]]))["fires_at"] == [0.5]


def test_gains_are_in_thresholds():
    soma = Soma(2, QIF(), norm="tdbn")
    with torch.no_grad():
        soma.norm.weight.copy_(torch.tensor([1.0, -7.0]))
    found = describe_membranes(SomaTrace(soma, None, [torch.zeros(3, 2)]))
    assert found["gain"] == {"rms": pytest.approx(5.0), "largest": 7.0}
    assert describe_membranes(seen(QIF(), [[0.1]]))["gain"] is None


def test_a_leaky_neuron_has_no_regions_and_silence_no_correlation():
    found = describe_membranes(seen(LIF(), [[0.1, 0.2], [0.3, 0.1]]))
    assert found["regions"] is None
    assert found["after_red"] is None
    assert found["temporal_correlation"] is None


def test_a_correlation_of_zero_is_one_too():
    assert correlation(torch.tensor([0.0, 0.0, 1.0, 1.0]), torch.tensor([0.0, 1.0, 0.0, 1.0])) == 0
    found = describe_membranes(seen(LIF(), [[0.0, 0.0, 1.0, 1.0], [0.0, 1.0, 0.0, 1.0]]))
    assert found["temporal_correlation"] == 0.0


def test_windows_told_apart_by_the_shortcut_s_spike():
    spikes = torch.tensor([[1.0], [0.0], [0.0], [0.0]])
    found = describe_membranes(seen(QIF(), [[1.2, 0.2], [0.3, -1.0]], spikes, "before"))
    assert found["window_by_shortcut"] == {"fired": 0.0, "silent": pytest.approx(2 / 3)}
    after = describe_membranes(seen(QIF(), [[1.2, 0.2], [0.3, -1.0]], spikes, "after"))
    assert after["window_by_shortcut"] is None


@pytest.mark.parametrize(
    "neuron",
    [
        QIF(),
        QIF(u1=0.4, u2=-0.3),
        QIF.from_resting(0.25, 0.1, 5.0, u_th=1.0),
        QIF.from_resting(0.25, -0.5, 4, u_th=2.0),
    ],
)
def test_the_regions_are_those_of_the_dynamics(neuron):
    u = torch.linspace(-3, 3, 1000, dtype=torch.float64).view(1, -1, 1)
    masks = dict(zip(("red", "blue", "green"), regions_of(neuron, u), strict=True))
    assert (sum(mask.long() for mask in masks.values()) == 1).all()
    for region in regions(neuron):
        expected = (u > region.low) & (u < region.high)
        assert torch.equal(masks.pop(region.name), expected)
    assert not any(mask.any() for mask in masks.values())


def test_regions_of_every_channel():
    neuron = QIF(u2=torch.tensor([0.5, 0.1]))
    red, blue, green = regions_of(neuron, torch.tensor([[[0.3, 0.3]]]))
    assert not red.any()
    assert blue.tolist() == [[[True, False]]]
    assert green.tolist() == [[[False, True]]]


def test_a_histogram_misses_no_membrane():
    u = 2 * torch.randn(50_000, dtype=torch.float64)
    found = histogram(u)
    assert sum(found["counts"]) + found["below"] + found["above"] == len(u)
    expected, _ = np.histogram(u.numpy(), bins=120, range=(-3, 3))
    assert found["counts"] == expected.tolist()
    assert found["below"] == int((u < -3).sum()) > 0


def test_ends_of_the_axis():
    almost = torch.tensor(3.0).nextafter(torch.tensor(0.0))
    found = histogram(torch.stack([torch.tensor(-3.0), almost, torch.tensor(3.0)]))
    assert (found["counts"][0], found["counts"][-1], found["above"]) == (1, 1, 1)


def test_windows_and_histograms_are_those_of_the_taps():
    model, x = create_model("cnn", in_channels=1, timesteps=3, seed=0), torch.randn(8, 1, 8, 8)
    layers = examine(model, lambda network: network(x).square().mean())["layers"]
    with torch.no_grad():
        _, seen = model.train()(x, taps=("window", "histogram"))
    for layer in layers:
        tapped = seen[layer["layer"]]
        assert layer["inside_window"] == pytest.approx(float(tapped["window"].mean()))
        counts = list(layer["histogram"]["counts"])
        counts[0] += layer["histogram"]["below"]  # the taps' ends are open
        counts[-1] += layer["histogram"]["above"]
        apart = torch.tensor(counts) - tapped["histogram"].sum(0)
        assert apart.abs().sum() <= 4  # rounding, at the edge of a bin


def stationary(*given, **options):
    return describe_membranes(SomaTrace(Soma(2, *given, **options), None, [torch.zeros(3, 2)]))[
        "stationary"
    ]


def test_the_stationary_density_is_of_the_first_gains():
    model = create_model("cnn", in_channels=1, initial_gain=2.0, seed=0)
    found = examine(model, lambda net: net(torch.randn(8, 1, 8, 8)).square().mean())
    assert found["layers"][0]["stationary"]["input_std"] == 1.0


def test_what_has_a_stationary_density():
    found = stationary(QIF(a=0.3), eta=0.5)
    assert found["input_std"] == 0.25
    assert QIF(**{k: v for k, v in found["neuron"].items() if k != "name"}).a == 0.3
    assert stationary(LIF())["neuron"]["beta"] == 0.25
    assert stationary(QIF(), norm="bn") is None
    assert stationary(QIF(), norm=None) is None
    assert stationary(QIF(), residual="before") is None  # its spikes are no Gaussian
    assert stationary(QIF(), residual="after") is not None
    assert stationary(QIF(u2=torch.tensor([0.5, 0.1]))) is None
    assert stationary("plif") is None
