"""What the time of a run went into."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quadspike.training.spending import Spending

Passing = Callable[[float], None]


@pytest.fixture
def passing(monkeypatch: pytest.MonkeyPatch) -> Passing:
    """Lets so many seconds pass, which pass no other way."""
    now = [0.0]
    monkeypatch.setattr("quadspike.training.spending.time.monotonic", lambda: now[0])

    def passing(seconds: float) -> None:
        now[0] += seconds

    return passing


def test_the_inner_of_two_claims_has_its_time_for_itself(passing: Passing) -> None:
    spent = Spending()
    passing(1)
    with spent.on("steps"):
        passing(2)
        with spent.on("capture"):
            passing(4)
        passing(8)
        assert spent.seconds() == {"start": 1, "steps": 10, "capture": 4}
        passing(16)
    passing(32)
    assert spent.seconds() == {"start": 33, "steps": 26, "capture": 4}


def test_time_until_an_error_counts_and_what_was_before_it_goes_on(passing: Passing) -> None:
    spent = Spending()

    @spent.on("data")
    def fail() -> None:
        passing(2)
        raise KeyError

    for _ in range(2):
        with pytest.raises(KeyError):
            fail()
    passing(1)
    assert spent.seconds() == {"start": 1, "data": 4}


def test_parts_of_a_run_add_up(passing: Passing) -> None:
    spent = Spending()
    spent.add({"start": 1.0, "steps": 5.0})
    with spent.on("steps"):
        passing(2)
        seconds = spent.seconds()
    passing(1)
    assert seconds == {"start": 1, "steps": 7}
