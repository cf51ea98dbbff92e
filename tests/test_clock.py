"""How much of a run is done, and how long the rest takes."""

from __future__ import annotations

import pytest

from quadspike.training import Recipe
from quadspike.training.clock import Clock, Workload

PER_EPOCH = 10
RECIPE = Recipe("tiny", "digits", "cnn", timesteps=4, epochs=4)


def shares(recipe: Recipe, *steps: int) -> list[float]:
    workload = Workload(recipe, 8, PER_EPOCH)
    return [workload.share(step) for step in steps]


def test_epochs_alike_are_done_step_by_step():
    assert shares(RECIPE, 0, 1, 20, 40) == [0.0, 0.025, 0.5, 1.0]


def test_epochs_of_fewer_steps_are_less_work():
    late = RECIPE.but(train_timesteps=1, full_epochs=2)
    assert shares(late, 10, 20, 25, 30, 40) == pytest.approx([0.1, 0.2, 0.4, 0.6, 1.0])


def test_epochs_of_small_images_are_less_work():
    assert shares(RECIPE.but(small_size=4, small_epochs=2), 20, 40) == pytest.approx([0.2, 1.0])


def test_grades_are_as_much_work_as_spikes():
    assert shares(RECIPE.but(graded_epochs=2), 20) == [0.5]


def test_the_time_left_is_by_the_work_left(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    late = RECIPE.but(train_timesteps=1, full_epochs=2)
    clock = Clock(60.0, 10, Workload(late, 8, PER_EPOCH))
    now[0] = 105.0  # five seconds for the second epoch, a tenth of the work
    assert clock.left(20) == pytest.approx(40.0)
    assert clock.left(40) == 0.0
    assert clock.rate(20) == pytest.approx(2.0)
