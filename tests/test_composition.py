"""What goes together, and why the rest does not."""

from __future__ import annotations

from typing import ClassVar, get_args

import pytest

from quadspike import QuadspikeError, create_model
from quadspike.composition import (
    FROM_STATISTICS,
    Parts,
    check,
    objection,
)
from quadspike.losses import LOSSES
from quadspike.neurons import LIF, NEURONS, Neuron
from quadspike.norms import NORMS, BatchNorm
from quadspike.surrogates import SURROGATES, ArcTan
from quadspike.training.field_values import LossName
from quadspike.training.recipe import Recipe
from tests.combinations import AIDS, combinations
from tests.pairwise import covering, pairwise


class Closed(LIF):
    """A neuron whose membrane has no closed form."""

    name = "closed"
    _two_step_statistics = Neuron._two_step_statistics


class Alone(ArcTan):
    name: ClassVar[str] = "alone"
    only_reference: ClassVar[str] = "it draws at random"


class Slow(BatchNorm):
    name = "slow"
    only_reference: ClassVar[str] = "it runs step by step"


@pytest.fixture(autouse=True)
def odd_parts(monkeypatch):
    """Parts that have what a rule is about, whoever else is registered."""
    monkeypatch.setitem(NEURONS, "closed", Closed)
    monkeypatch.setitem(SURROGATES, "alone", Alone)
    monkeypatch.setitem(NORMS, "slow", Slow)
    monkeypatch.setitem(NORMS, "mpbn", type("MP", (BatchNorm,), {"name": "mpbn"}))


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        (Parts("closed", surrogate="window"), ("surrogate='window'", "'closed'", "qif, lif")),
        (Parts("closed", surrogate="learned-width"), ("surrogate='learned-width'", "'closed'")),
        (Parts("closed", window="mean"), ("window='mean'", "no closed form")),
        (Parts("ternary", surrogate="window"), ("surrogate='window'", "two", "rectangle")),
        (Parts("ternary", surrogate="triangle"), ("surrogate='triangle'", "two")),
        (Parts("ternary", window="mean"), ("window='mean'", "two")),
        (Parts("ternary", window=0.0), ("window=0.0", "two")),
        (Parts("ternary", loss="im"), ("loss='im'", "two")),
        (Parts("ternary-trained", window="mean"), ("window='mean'", "two")),
        (Parts("qif-learned", window="stationary"), ("'stationary'", "every step")),
        (Parts("lsg", window="stationary"), ("'stationary'", "every step")),
        (Parts("lif", "mpbn", loss="im"), ("loss='im'", "norm='mpbn'", "bias")),
        (Parts("lif", surrogate="alone", backend="triton"), ("at random", "'triton'", "'auto'")),
        (Parts("lif", "slow", backend="vectorised"), ("norm='slow'", "step by step")),
        (Parts("lif", aid="sml", stages=False), ("aid='sml'", "stages")),
        (Parts("lif", aid="shortcuts", stages=False), ("aid='shortcuts'", "stages")),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_reason(parts, words):
    with pytest.raises(QuadspikeError) as caught:
        check(parts)
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(
    "parts",
    [
        Parts("qif", window="stationary"),
        Parts("qif-learned", window="mean"),
        Parts("ternary", surrogate="rectangle", loss="tet", aid="imp"),
        Parts("lif", "mpbn", loss="tet"),
        Parts("lif", surrogate="alone", backend="reference"),
        Parts("lif", "slow", backend="auto"),
        Parts("lif", aid="imp", stages=False),
        Parts("one's own", surrogate="window"),
        Parts("lif", None),
    ],
)
def test_what_makes_sense_is_not(parts):
    assert objection(parts) == ""


def test_recipes_and_models_refuse_alike():
    fields = {"name": "mine", "dataset": "digits", "model": "mlp"}
    with pytest.raises(QuadspikeError, match="heads after"):
        Recipe(**fields, aid="sml")
    with pytest.raises(QuadspikeError, match="no closed form"):
        create_model("mlp", neuron=Closed(surrogate="window"))


def test_every_choice_is_in_some_combination():
    found = combinations()
    assert len(found) == len(set(found))
    axes = {"neuron": NEURONS, "norm": NORMS, "surrogate": SURROGATES, "loss": LOSSES, "aid": AIDS}
    for axis, names in axes.items():
        assert {getattr(parts, axis) for parts in found} - {None} == set(names)
    assert Parts("qif", "tdbn", None, "ce", None) in found
    assert Parts("ternary", "tdbn", "window", "ce", None) not in found


def test_the_recipe_s_names_are_the_registries():
    assert set(get_args(LossName)) == set(LOSSES)
    assert "window" in FROM_STATISTICS


def test_a_covering_part_has_every_pair_that_meets_at_all():
    cases = [parts._asdict() for parts in combinations()]
    chosen = covering(cases)

    def pairs(some):
        return {(a, case[a], b, case[b]) for case in some for a in case for b in case if a < b}

    assert pairs(chosen) == pairs(cases)
    assert len(chosen) < len(cases) / 10
    free = {"a": [1, 2, 3], "b": [1, 2], "c": [1, 2]}
    whole = [{"a": a, "b": b, "c": c} for a in free["a"] for b in free["b"] for c in free["c"]]
    assert pairs(covering(whole)) == pairs(pairwise(free))
