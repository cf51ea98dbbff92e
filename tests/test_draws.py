from __future__ import annotations

import itertools

import pytest
import torch

from quadspike.draws import EACH, Draws, mixed, share, words_of
from quadspike.randomness import Key


def drawn(key, name="a", shape=(7, 3, 5), samples=5, step=0, number=0):
    x = torch.empty(shape)
    return Draws.of(key, name, samples, x).at(step).word(x, number)


@pytest.mark.parametrize(
    ("state", "expected"),
    [  # the first outputs of SplitMix64 from 0
        (0x9E3779B97F4A7C15, 0xE220A8397B1DCDAF),
        (2 * 0x9E3779B97F4A7C15, 0x6E789E6AA1B965F4),
        (3 * 0x9E3779B97F4A7C15, 0x06C45D188009454F),
    ],
)
def test_splitmix_known_answers(state, expected):
    signed = (state + 2**63) % 2**64 - 2**63
    assert mixed(torch.tensor(signed)).item() % 2**64 == expected


def test_a_sample_s_draws_follow_its_place_in_the_whole_batch():
    for step, number in ((0, 0), (0, 1), (3, 1)):
        whole = drawn(Key(1, 2), step=step, number=number)
        again = drawn(Key(torch.tensor(1), torch.tensor(2)), step=step, number=number)
        assert torch.equal(again, whole)
        for first, count in ((0, 2), (2, 1), (3, 4)):
            part = drawn(Key(1, 2, first), "a", (count, 3, 5), 5, step, number)
            assert torch.equal(part, whole[first : first + count])


def test_a_place_is_the_same_however_memory_lies():
    x = torch.empty(2, 3, 4, 5)
    other = x.contiguous(memory_format=torch.channels_last)
    draws = Draws.of(Key(1, 2), "a", 1, x)
    assert torch.equal(draws.word(other, 0), draws.word(x, 0))
    assert draws.word(other, 0).stride() == other.stride()


def test_nothing_is_drawn_twice():
    """Not for another seed, step of training, layer, time step or word."""
    choices = itertools.product((0, 1, 2), (0, 1, 2), "ab", (0, 1, 2), (0, 1))
    words = torch.cat(
        [
            drawn(Key(seed, count), name, (4000,), 6, step, number)
            for seed, count, name, step, number in choices
        ]
    )
    assert len(words.unique()) == len(words)


@pytest.mark.parametrize("axis", ["seed", "count", "name", "step", "number", "place"])
def test_every_bit_is_a_coin_and_neighbours_do_not_agree(axis):
    """Neighbours along whatever a word depends on."""
    given = {"seed": 3, "count": 0, "name": "x", "step": 0, "number": 0}
    next_one = {**given, axis: "y" if axis == "name" else given.get(axis, 0) + 1}

    def words(seed, count, name, step, number, place=0):
        return drawn(Key(seed, count, first=place), name, (50_000,), 6, step, number)

    one, other = (
        (words(**choice)[:, None] >> torch.arange(64)) & 1 for choice in (given, next_one)
    )
    assert (one.double().mean(0) - 0.5).abs().max() < 0.01
    assert ((one == other).double().mean(0) - 0.5).abs().max() < 0.01


def test_shares_fill_the_open_interval_evenly_and_do_not_know_each_other():
    x = torch.empty(200_000)
    draws = Draws.of(Key(1, 2), "a", 6, x)
    words = [draws.word(x, number) for number in range(words_of(6))]
    shares = torch.stack([share(word, k, torch.float32) for word in words for k in range(EACH)])
    assert shares.min() > 0
    assert shares.max() < 1
    even = (torch.arange(200_000) + 0.5) / 200_000
    assert (shares.sort(1).values - even).abs().max() < 2 / 200_000**0.5
    together = torch.corrcoef(shares) - torch.eye(6)
    assert together.abs().max() < 5 / 200_000**0.5


def test_float32_holds_a_share_without_rounding():
    words = torch.tensor([0, -1, 1, 2**21 - 2])
    for place in range(EACH):
        exact = share(words, place, torch.float64)
        assert torch.equal(share(words, place, torch.float32).double(), exact)
        assert exact.min() == 2**-22
        assert exact.max() == 1 - 2**-22
