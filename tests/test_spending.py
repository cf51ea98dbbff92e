"""What the time of a run went into."""

from __future__ import annotations

import time

import pytest

from quadspike.training.spending import Spending


def test_only_the_outer_of_two_claims_counts() -> None:
    spent = Spending()
    with spent.on("evaluation"), spent.on("capture"):
        time.sleep(0.05)
    with spent.on("capture"):
        time.sleep(0.01)
    assert spent.seconds["evaluation"] >= 0.05
    assert 0.01 <= spent.seconds["capture"] < 0.05


def test_time_until_an_error_counts_and_the_next_claim_is_heard() -> None:
    spent = Spending()

    @spent.on("data")
    def fail() -> None:
        time.sleep(0.02)
        raise KeyError

    for _ in range(2):
        with pytest.raises(KeyError):
            fail()
    assert spent.seconds["data"] >= 0.04


def test_steps_are_what_is_left_of_all_parts() -> None:
    spent = Spending()
    spent.add({"data": 1.0, "steps": 5.0})
    assert spent.of(10.0) == {"data": 1.0, "steps": 9.0}
