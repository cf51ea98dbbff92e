from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from quadspike import QuadspikeError
from quadspike.data import loader as loader_module
from quadspike.data.events.transforms import TimeFirst
from quadspike.data.loader import Loader
from quadspike.data.split import Split
from quadspike.randomness import per_sample


def toy(size=10):
    inputs = torch.arange(size, dtype=torch.uint8).view(-1, 1, 1, 1).expand(-1, 1, 2, 2)
    return Split("toy", inputs, torch.arange(size) % 3, ("a", "b", "c"))


def noisy(x, draw):
    return x.float() + draw.uniform(1, "noise").view(-1, 1, 1, 1)


def test_an_epoch_in_order_has_every_sample():
    batches = list(Loader(toy(), 4, lambda x, draw: x).epoch())
    assert [len(batch.inputs) for batch in batches] == [4, 4, 2]
    assert torch.cat([batch.labels for batch in batches]).tolist() == [i % 3 for i in range(10)]


def test_a_shuffled_epoch_drops_the_partial_batch_and_changes_with_the_epoch():
    loader = Loader(toy(), 4, lambda x, draw: x, shuffle=True)
    first = torch.cat([batch.inputs[:, 0, 0, 0] for batch in loader.epoch(0)])
    second = torch.cat([batch.inputs[:, 0, 0, 0] for batch in loader.epoch(1)])
    assert len(loader) == 2
    assert len(first.unique()) == 8
    assert not torch.equal(first, second)


def test_an_epoch_entered_in_the_middle_goes_on_the_same():
    loader = Loader(toy(), 2, noisy, seed=3, shuffle=True)
    whole = list(loader.epoch(7))
    rest = list(loader.epoch(7, start=3))
    for ours, theirs in zip(rest, whole[3:], strict=True):
        assert torch.equal(ours.inputs, theirs.inputs)
        assert torch.equal(ours.labels, theirs.labels)


def test_a_loader_s_draws_are_those_of_the_rule():
    seen = []
    loader = Loader(toy(), 4, lambda x, draw: seen.append(draw) or x, seed=3, shuffle=True)
    list(loader.epoch(5))
    for draw in seen:
        assert torch.equal(draw.uniform(3, "a"), per_sample(3, draw.samples, 3, 5, "a"))


def test_batches_transformed_together_are_those_transformed_alone(monkeypatch):
    def epoch(chunk_bytes):
        monkeypatch.setattr(loader_module, "CHUNK_BYTES", chunk_bytes)
        return list(Loader(toy(50), 4, noisy, seed=3, shuffle=True).epoch(2, start=1))

    alone, together = epoch(1), epoch(5 * 4 * 4 * 4)
    assert [len(batch.inputs) for batch in together] == [4] * 11
    for ours, theirs in zip(together, alone, strict=True):
        assert torch.equal(ours.inputs, theirs.inputs)
        assert torch.equal(ours.labels, theirs.labels)


def test_clips_are_cut_along_their_second_axis():
    clips = torch.arange(6, dtype=torch.uint8).view(6, 1, 1, 1, 1).expand(6, 3, 2, 4, 4)
    split = Split("clips", clips, torch.arange(6) % 2, ("a", "b"), levels=1)
    batches = list(Loader(split, 4, TimeFirst(1)).epoch())
    assert [batch.inputs.shape for batch in batches] == [(3, 4, 2, 4, 4), (3, 2, 2, 4, 4)]
    assert batches[1].inputs[0, :, 0, 0, 0].tolist() == [4, 5]


def test_a_transform_that_leaves_time_behind_is_refused():
    """Time would be cut into batches, and the labels be those of other clips."""
    clips = torch.zeros(12, 8, 2, 4, 4, dtype=torch.uint8)
    split = Split("clips", clips, torch.arange(12) % 2, ("a", "b"), levels=1)
    with pytest.raises(QuadspikeError, match=r"\[12, 8, 2, 4, 4\] of 12 samples.* time first"):
        next(Loader(split, 4, lambda x, draw: x.float(), shuffle=True).epoch())


def test_a_sample_s_augmentation_does_not_depend_on_the_batch_size():
    def by_sample(size):
        loader = Loader(toy(), size, noisy, seed=3)
        return torch.cat([batch.inputs for batch in loader.epoch(2)])

    assert torch.equal(by_sample(3), by_sample(7))


def values(batches):
    return [batch.inputs[:, 0, 0, 0].tolist() for batch in batches]


@pytest.mark.parametrize("world", [1, 2, 3, 6])
def test_shuffled_the_ranks_share_the_batch_of_one(world):
    def epoch(rank, world):
        loader = Loader(toy(40), 6, noisy, seed=3, shuffle=True, rank=rank, world=world)
        return list(loader.epoch(4, start=2))

    ranks = [epoch(rank, world) for rank in range(world)]
    for alone, *parts in zip(epoch(0, 1), *ranks, strict=True):
        assert all(len(part.labels) == 6 // world for part in parts)
        assert torch.equal(torch.cat([part.inputs for part in parts]), alone.inputs)
        assert torch.equal(torch.cat([part.labels for part in parts]), alone.labels)


@settings(deadline=None)
@given(size=st.integers(1, 40), batch=st.integers(1, 12), world=st.integers(1, 7))
def test_in_order_every_sample_is_on_one_rank_once(size, batch, world):
    seen = []
    for rank in range(world):
        loader = Loader(toy(size), batch, noisy, seed=3, rank=rank, world=world)
        batches = list(loader.epoch(1))
        assert len(batches) == len(loader)
        assert all(len(part.labels) <= -(-batch // world) for part in batches)
        mine = [value for part in values(batches) for value in part]
        assert len(mine) == size * (rank + 1) // world - size * rank // world
        seen += mine
    assert seen == [
        value for part in values(Loader(toy(size), 5, noisy, 3).epoch(1)) for value in part
    ]


def test_an_epoch_in_order_can_be_entered_on_any_rank():
    loader = Loader(toy(23), 6, noisy, seed=3, rank=1, world=3)
    assert values(loader.epoch(0, start=2)) == values(loader.epoch())[2:]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Loader(toy(), 5, noisy, shuffle=True, world=2), "batch of 5 .* for 2 ranks"),
        (lambda: Loader(toy(), 4, noisy, rank=2, world=2), r"rank must lie in 0\.\.1, got 2"),
        (lambda: Loader(toy(), 4, noisy, rank=-1, world=2), "rank"),
        (lambda: Loader(toy(), 4, noisy, world=0), "world"),
        (lambda: Loader(toy(), 11, noisy, shuffle=True), "larger than the 10 samples"),
        (lambda: Loader(toy(), 0, noisy), "batch_size"),
        (lambda: list(Loader(toy(), 2, noisy).epoch(0, start=-1)), r"0\.\.5"),
        (lambda: Split("x", torch.zeros(2, 1, 2, 2), torch.zeros(2).long(), ("a",)), "uint8"),
        (lambda: Split("x", toy().inputs, torch.zeros(3).long(), ("a",)), "int64"),
        (lambda: Split("x", toy().inputs.numpy(), toy().labels, ("a",)), "inputs.* got ndarray"),
        (lambda: Split("x", toy().inputs, [0] * 10, ("a",)), "labels must be a tensor, got list"),
        (lambda: Split("x", toy().inputs, toy().labels, 3), "names in order, got 3"),
        (lambda: Split("x", toy().inputs, torch.full((10,), 3), ("a", "b", "c")), r"0\.\.2"),
        # Brightness was supposed: the counts of events came to the network divided by 255.
        (lambda: Split("x", toy().inputs[None], torch.zeros(1).long(), ("a",)), "levels=1 for"),
    ],
)
def test_bad_input_is_refused(make, message):
    with pytest.raises(QuadspikeError, match=message):
        make()
