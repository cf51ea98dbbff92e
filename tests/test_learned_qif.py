from __future__ import annotations

import copy
import math
import warnings

import pytest
import torch
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from quadspike import QIF, QuadspikeError, QuadspikeWarning, create_neuron
from quadspike.neurons import LearnedQIF

NAMES = ("a", "u1", "u2", "u_th")


def test_it_starts_exactly_at_the_paper_s_values():
    neuron, qif, x = LearnedQIF(), QIF(), torch.randn(6, 500)
    assert [getattr(neuron, name).item() for name in NAMES] == [0.25, 0.0, 0.5, 0.5]
    assert all(getattr(neuron, name).shape == () for name in NAMES)
    grads = []
    for one in (neuron, qif):
        value = x.clone().requires_grad_()
        spikes = one(value)
        grads += torch.autograd.grad((spikes * torch.arange(500)).sum(), value)
        assert torch.equal(spikes, qif(x))
    torch.testing.assert_close(*grads)
    window = [float(edge) for edge in neuron.surrogate.window(neuron)]
    assert window == pytest.approx(qif.surrogate.window(qif), abs=1e-6)


@pytest.mark.parametrize("center", ["mean", "threshold"])
def test_its_window_follows_and_passes_no_gradient(center):
    surrogate = {"name": "window", "center": center}
    neuron = LearnedQIF(surrogate=surrogate)
    moved = {"a": 0.4, "u1": -0.2, "u2": 0.3, "u_th": 0.7}
    for name, value in moved.items():
        torch.nn.init.constant_(getattr(neuron, name), value)
    edges, expected = neuron.surrogate.window(neuron), QIF(**moved, surrogate=surrogate)
    assert [float(edge) for edge in edges] == pytest.approx(expected.surrogate.window(expected))
    assert not any(edge.requires_grad for edge in edges)


def placed(a, u1, u2, u_th, kind=LearnedQIF):
    """A neuron with these values, allowed or not."""
    neuron = kind()
    with torch.no_grad():
        for name, value in zip(NAMES, (a, u1, u2, u_th), strict=True):
            getattr(neuron, name).fill_(value)
    return neuron


def values_of(neuron):
    return [getattr(neuron, name).detach().clone() for name in NAMES]


def is_allowed(neuron):
    """As the constructor says of the same numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QuadspikeWarning)
        try:
            create_neuron(neuron.config())
        except QuadspikeError:
            return False
    return True


ANY = st.floats(-20, 20, width=32)


@given(st.floats(-2, 8, width=32), ANY, ANY, ANY)
@settings(max_examples=500, deadline=None)
@example(0.25, 0.0, -4.0, 0.0)  # the fixed points meet at 0
@example(0.25, -1.0, -1.0, 0.0)  # and at 1
@example(0.0, 0.0, 0.5, 0.5)
@example(1e-30, 0.0, 0.5, 0.5)
@example(8.0, -20.0, -20.0, -20.0)
def test_projection_allows_whatever_comes_and_then_changes_nothing(a, u1, u2, u_th):
    neuron = placed(a, u1, u2, u_th)
    neuron.project()
    assert is_allowed(neuron), values_of(neuron)
    once = values_of(neuron)
    neuron.project()
    assert all(map(torch.equal, once, values_of(neuron)))


@given(st.floats(1 / 64, 4, width=32), ANY, ANY, st.floats(0.01, 0.99))
@settings(max_examples=500, deadline=None)
def test_projection_leaves_what_is_allowed(a, u1, u2, place):
    # Fixed points: a x^2 - (a (u1 + u2) + 1) x + a u1 u2 = 0, here in double precision.
    half, upper = (u1 + u2 + 1 / a) / 2, max(u1, u2)
    apart = half * half - u1 * u2
    assume(apart > 1e-4 * (1 + half * half))
    critical = half + math.sqrt(apart)
    assume(upper < critical - 1e-4)
    assume(2 * a * math.sqrt(apart) < 2 - 1e-4)
    neuron = placed(a, u1, u2, upper + place * (critical - upper))
    before = values_of(neuron)
    neuron.project()
    assert all(map(torch.equal, before, values_of(neuron)))


@pytest.mark.parametrize("given", [{"a": [0.2, 0.3]}, {"u2": [0.5, 0.4]}, {"u_th": [0.5, 0.6]}])
def test_projection_of_each_channel_is_that_of_a_neuron_of_its_own(given):
    neuron = LearnedQIF(**given)
    alone = [LearnedQIF(**{name: values[k] for name, values in given.items()}) for k in (0, 1)]
    for each in (neuron, *alone):
        with torch.no_grad():
            each.a += 5.0
            each.u_th -= 1.0
        each.project()
    both = (torch.stack(pair) for pair in zip(*map(values_of, alone), strict=True))
    for found, wanted in zip(values_of(neuron), both, strict=True):
        assert torch.equal(found.expand(2), wanted)
    assert is_allowed(neuron)


def test_a_resting_point_stays_stable():
    neuron = placed(7.0, 0.0, 0.5, 0.5)
    neuron.project()
    assert [v.item() for v in values_of(neuron)] == pytest.approx([2.0, 0.0, 0.5, 0.5])
    slope = neuron.a * (2 * neuron.resting - neuron.u_sum)
    assert slope.item() == pytest.approx(-1)


def test_projection_moves_no_further_than_it_must():
    neuron = placed(0.25, 0.0, 0.7, 0.5)  # only the threshold is in the way
    neuron.project()
    assert [v.item() for v in values_of(neuron)] == pytest.approx([0.25, 0.0, 0.7, 0.7])
    neuron = placed(-0.1, 0.0, 0.5, 0.5)
    neuron.project()
    assert [v.item() for v in values_of(neuron)] == pytest.approx([1e-3, 0.0, 0.5, 0.5])


def test_projection_reads_nothing_on_the_host():
    neuron = copy.deepcopy(LearnedQIF()).to("meta")  # where nothing can be read
    neuron.project()


def test_projection_hides_no_number_that_is_none():
    neuron = placed(float("nan"), 0.0, 0.5, 0.5)
    neuron.project()
    assert neuron.a.isnan()


def test_it_learns_where_projection_lets_it():
    torch.manual_seed(0)
    neuron = LearnedQIF()
    optimizer = torch.optim.SGD(neuron.parameters(), lr=0.5)
    for _ in range(20):
        optimizer.zero_grad()
        neuron(torch.randn(4, 300)).mean().backward()
        optimizer.step()
        neuron.project()
        assert is_allowed(neuron)
    assert [v.item() for v in values_of(neuron)] != [0.25, 0.0, 0.5, 0.5]
