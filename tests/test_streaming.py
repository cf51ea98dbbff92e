from __future__ import annotations

import multiprocessing
import os
import signal
import time
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from quadspike import QuadspikeError
from quadspike.data.streaming import StreamingLoader, decoding
from quadspike.errors import DataError


class Numbers:
    """Image i is the number i everywhere, with its draws beside it."""

    name = "numbers"
    classes = ("even", "odd")
    broken = "fatal"
    size = 2
    draws = 3

    def __init__(self, count):
        self.labels = torch.arange(count) % 2

    def __len__(self):
        return len(self.labels)

    def file(self, index):
        return Path(str(index))

    def load(self, index, u):
        image = torch.full((3, 2, 2), index, dtype=torch.uint8)
        image[0, 0] = int(u[0] * 256)
        return image

    def finish(self, x, draw):
        return x.float() + draw.uniform(1, "noise").view(-1, 1, 1, 1)


def numbers(batches):
    """Which images each batch holds."""
    return [batch.inputs[:, 2, 1, 1].long().tolist() for batch in batches]


def assert_same(ours, theirs):
    for one, other in zip(ours, theirs, strict=True):
        assert torch.equal(one.inputs, other.inputs)
        assert torch.equal(one.labels, other.labels)


def test_in_order_every_image_is_there_and_the_last_batch_is_partial():
    loader = StreamingLoader(Numbers(11), 4)
    batches = list(loader.epoch())
    assert numbers(batches) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10]]
    assert torch.cat([batch.labels for batch in batches]).tolist() == [i % 2 for i in range(11)]
    assert (len(loader), loader.broken) == (3, {})


def test_the_order_follows_seed_and_epoch():
    def order(seed, epoch):
        loader = StreamingLoader(Numbers(40), 8, seed=seed, shuffle=True)
        return tuple(image for batch in numbers(loader.epoch(epoch)) for image in batch)

    assert order(0, 0) == order(0, 0)
    assert len({order(seed, epoch) for seed in (0, 1) for epoch in (0, 1)}) == 4


def test_layout_is_channels_last():
    (batch,) = StreamingLoader(Numbers(4), 4).epoch()
    assert batch.inputs.is_contiguous(memory_format=torch.channels_last)


def test_workers_change_nothing_and_serve_epoch_after_epoch():
    alone = StreamingLoader(Numbers(30), 4, seed=5, shuffle=True)
    helped = StreamingLoader(Numbers(30), 4, 2, seed=5, shuffle=True)
    for epoch in (0, 1):
        assert_same(alone.epoch(epoch), helped.epoch(epoch))


@pytest.mark.parametrize("workers", [0, 2])
def test_an_epoch_entered_in_the_middle_goes_on_the_same(workers):
    loader = StreamingLoader(Numbers(30), 4, workers, seed=5, shuffle=True)
    whole = list(loader.epoch(2))
    for start in (0, 3, 6, 7):
        assert_same(loader.epoch(2, start), whole[start:])


@pytest.mark.parametrize("workers", [0, 2])
def test_an_epoch_left_in_the_middle_does_not_leak_into_the_next(workers):
    loader = StreamingLoader(Numbers(30), 4, workers, seed=5, shuffle=True)
    whole = list(loader.epoch(1))
    left = loader.epoch(0)
    next(left)
    assert_same(loader.epoch(1), whole)
    with pytest.raises(QuadspikeError, match="one epoch at a time"):
        next(left)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_closed_loader_begins_anew(workers):
    loader = StreamingLoader(Numbers(30), 4, workers, seed=5, shuffle=True)
    whole = list(loader.epoch(1))
    batches = loader.epoch(1)
    next(batches)
    loader.close()
    with pytest.raises(QuadspikeError, match=r"ended by another or by close"):
        next(batches)
    assert_same(loader.epoch(1), whole)


def test_a_lost_worker_is_told_in_words():
    """As the system ends it where memory runs out."""

    def lose_one():
        before = set(multiprocessing.active_children())
        batches = StreamingLoader(Numbers(80), 4, workers=1).epoch()
        with decoding():
            next(batches)
            (decoder,) = set(multiprocessing.active_children()) - before
            os.kill(decoder.pid, signal.SIGKILL)
            time.sleep(30)  # torch raises in the midst of this, and not while a queue is locked
            list(batches)

    with pytest.raises(DataError, match="decodes images was lost"):
        lose_one()


def test_other_errors_are_left_alone():
    with pytest.raises(RuntimeError, match="something else"), decoding():
        raise RuntimeError("something else")


@pytest.mark.parametrize("world", [1, 2, 3, 6])
def test_any_number_of_ranks_makes_the_same_global_batches(world):
    def on(world):
        """Batches of 12 put together from the ranks'."""
        ranks = [
            StreamingLoader(Numbers(50), 12 // world, seed=3, shuffle=True, rank=r, world=world)
            for r in range(world)
        ]
        steps = zip(*(rank.epoch(4) for rank in ranks), strict=True)
        return [torch.cat([batch.inputs for batch in step]) for step in steps]

    for ours, theirs in zip(on(world), on(1), strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("size", [12, 13, 14, 23, 24, 47])
@pytest.mark.parametrize("world", [1, 2, 3, 4])
@pytest.mark.parametrize("shuffle", [False, True])
def test_ranks_share_an_epoch_without_overlap_in_equally_many_steps(size, world, shuffle):
    loaders = [
        StreamingLoader(Numbers(size), 3, rank=rank, world=world, shuffle=shuffle)
        for rank in range(world)
    ]
    ranks = [numbers(loader.epoch(1)) for loader in loaders]
    seen = [image for rank in ranks for batch in rank for image in batch]
    assert len(set(seen)) == len(seen) == (size - size % (3 * world) if shuffle else size)
    assert {len(rank) for rank in ranks} == {len(loaders[0])}
    assert {len(batch) for rank in ranks for batch in rank} <= {1, 2, 3}
    counts = [sum(map(len, rank)) for rank in ranks]
    assert max(counts) - min(counts) <= (0 if shuffle else 2)
    full = [{len(rank[step]) for rank in ranks} == {3} for step in range(len(loaders[0]))]
    assert all(before for before, _ in list(pairwise(full))[:-1])


def test_the_global_generator_is_left_alone():
    loader = StreamingLoader(Numbers(8), 4, shuffle=True)
    before = torch.get_rng_state()
    list(loader.epoch())
    assert torch.equal(torch.get_rng_state(), before)


def test_a_draw_belongs_to_the_sample_and_not_to_its_batch():
    def by_sample(batch_size):
        batches = StreamingLoader(Numbers(24), batch_size, seed=2, shuffle=True).epoch(1)
        images = torch.cat([batch.inputs for batch in batches])
        return images[images[:, 2, 1, 1].argsort()]

    assert torch.equal(by_sample(3), by_sample(8))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size"),
        ({"batch_size": 9, "shuffle": True}, "larger than the 8 images of numbers"),
        ({"batch_size": 3, "world": 3, "shuffle": True}, r"a batch of 9 \(3 on each of 3"),
        ({"batch_size": 2, "rank": 2, "world": 2}, r"rank must lie in 0\.\.1, got 2"),
        ({"batch_size": 1, "world": 3}, "leave one of 3 ranks without any"),
        ({"batch_size": 2, "workers": -1}, "workers must be at least 0"),
    ],
)
def test_bad_settings_are_refused(options, message):
    with pytest.raises(QuadspikeError, match=message):
        StreamingLoader(Numbers(8), **options)


def test_a_start_outside_the_epoch_is_refused():
    with pytest.raises(QuadspikeError, match=r"start must lie in 0\.\.2, got 3"):
        next(StreamingLoader(Numbers(8), 4).epoch(0, start=3))


@pytest.mark.gpu
def test_pinned_batches_arrive_on_the_gpu_as_on_the_host():
    here = StreamingLoader(Numbers(30), 4, 2, seed=5, shuffle=True).epoch(1)
    there = StreamingLoader(Numbers(30), 4, 2, seed=5, shuffle=True, device="cuda").epoch(1)
    for ours, theirs in zip(here, there, strict=True):
        assert theirs.inputs.is_cuda
        assert torch.equal(ours.inputs, theirs.inputs.cpu())
        assert torch.equal(ours.labels, theirs.labels.cpu())
