from __future__ import annotations

from typing import get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from quadspike import QuadspikeError
from quadspike.data.digits import load_digits
from quadspike.training.field_values import Dataset
from quadspike.training.holdout import hold_out
from quadspike.training.sizes import TRAINING_SAMPLES


@settings(deadline=None, max_examples=500)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=80), st.data())
def test_every_sample_is_on_one_side_and_classes_in_proportion(labels, data):
    labels = torch.tensor(labels)
    count = data.draw(st.integers(0, len(labels) - 1))
    kept, held = hold_out(labels, count, "toy")
    assert len(held) == count
    assert torch.equal(torch.cat([kept, held]).sort().values, torch.arange(len(labels)))
    assert (kept.diff() > 0).all()
    assert (held.diff() > 0).all()
    sizes = torch.bincount(labels)
    share = sizes * count / len(labels)
    # Each class is rounded by half a sample at most, and shares in what all roundings add up to.
    bound = 0.5 + 0.5 * (sizes > 0).sum() * sizes / len(labels)
    taken = torch.bincount(labels[held], minlength=len(sizes))
    assert ((taken - share).abs() <= bound + 1e-6).all()


@pytest.mark.parametrize("dataset", ["digits", "digits-events"])
def test_known_sizes_are_those_of_the_data(dataset):
    assert TRAINING_SAMPLES[dataset] == len(load_digits()[0])
    assert TRAINING_SAMPLES.keys() == {*get_args(Dataset)} - {"own"}


def test_equal_classes_are_held_out_evenly():
    labels = torch.arange(1000) % 10
    _, held = hold_out(labels, 200, "toy")
    assert torch.bincount(labels[held]).tolist() == [20] * 10
    _, more = hold_out(labels, 205, "toy")
    assert sorted(torch.bincount(labels[more]).tolist()) == [20] * 5 + [21] * 5
    assert set(held.tolist()) < set(more.tolist())
    assert held.tolist() != list(range(200))


@pytest.mark.parametrize("count", [10, 11, -1])
def test_something_must_be_left_to_train_on(count):
    with pytest.raises(QuadspikeError, match=rf"validation={count} .* the 10 samples of toy"):
        hold_out(torch.zeros(10, dtype=torch.long), count, "toy")
