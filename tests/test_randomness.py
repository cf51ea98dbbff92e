from __future__ import annotations

import pytest
import torch

from quadspike.randomness import (
    Key,
    of_batch,
    per_sample,
    permutation,
    philox,
    purpose,
)


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [  # the published known-answer vectors of Philox4x32-10
        ([0] * 4, [0] * 2, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            [0xA4093822, 0x299F31D0],
            "d16cfe09 94fdcceb 5001e420 24126ea1",
        ),
    ],
)
def test_philox_known_answers(counter, key, expected):
    words = philox(tuple(map(torch.tensor, counter)), tuple(map(torch.tensor, key)))
    assert " ".join(f"{word:08x}" for word in words.tolist()) == expected


def test_draws_depend_on_seed_step_and_name_alone():
    base = of_batch((1000,), Key(1, 2), "a")
    assert torch.equal(base, of_batch((1000,), Key(1, 2), "a"))
    assert torch.equal(base, of_batch((1000,), Key(torch.tensor(1), torch.tensor(2)), "a"))
    for other in (Key(2, 2), Key(1, 3), Key(1 + 2**32, 2)):
        assert not torch.equal(base, of_batch((1000,), other, "a"))
    assert not torch.equal(base, of_batch((1000,), Key(1, 2), "b"))
    assert purpose("a") == 0xE8B7BE43


def test_draws_are_uniform():
    draws = of_batch((200_000,), Key(3, 0), "x").double()
    assert draws.min() >= 0
    assert draws.max() < 1
    assert draws.mean().item() == pytest.approx(0.5, abs=3e-3)
    assert draws.var().item() == pytest.approx(1 / 12, abs=1e-3)


def test_a_sample_s_draws_do_not_depend_on_its_batch():
    samples = torch.tensor([3, 70_000, 5])
    draws = per_sample(7, samples, seed=9, epoch=4, name="crop")
    assert draws.shape == (3, 7)
    for row, sample in zip(draws, samples, strict=True):
        assert torch.equal(row, per_sample(7, sample[None], 9, 4, "crop")[0])
    for changed in ({"seed": 8}, {"epoch": 5}, {"name": "flip"}):
        other = per_sample(7, samples, **{"seed": 9, "epoch": 4, "name": "crop", **changed})
        assert not (other == draws).any()


def test_a_sample_s_draws_follow_its_place_in_the_whole_batch():
    whole = of_batch((7, 3, 5), Key(1, 2), "a")
    assert torch.equal(of_batch((7, 3, 5), Key(torch.tensor(1), torch.tensor(2)), "a"), whole)
    for first, count in ((0, 2), (2, 1), (3, 4)):
        part = of_batch((count, 3, 5), Key(1, 2, first), "a")
        assert torch.equal(part, whole[first : first + count])
    for key, name in ((Key(2, 2), "a"), (Key(1, 3), "a"), (Key(2, 1), "a"), (Key(1, 2), "b")):
        assert not (of_batch((7, 3, 5), key, name) == whole).any()


def test_a_permutation_is_one_and_changes_with_the_epoch():
    one, two = permutation(1000, 0, 0), permutation(1000, 0, 1)
    assert torch.equal(one.sort().values, torch.arange(1000))
    assert not torch.equal(one, two)
    assert torch.equal(one, permutation(1000, 0, 0))
    assert (one == torch.arange(1000)).sum() < 10
