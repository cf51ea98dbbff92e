from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from quadspike import QuadspikeError
from quadspike.data.events.form import Events
from quadspike.data.events.frames import EventBatch, Framing, to_bytes, to_frames
from quadspike.data.events.resize import _weights, resize_frames
from quadspike.data.events.statistics import statistics
from quadspike.errors import QuadspikeWarning
from tests import event_files


def recording(count, seed=0, width=6, height=5, end=1000):
    return event_files.recording(seed, count, width, height, end)


def one_by_one(events, steps, by):
    """The frames by the definition, an event at a time."""
    frames = torch.zeros(steps, 2, events.height, events.width, dtype=torch.long)
    share, duration = len(events) // steps, events.duration
    for place in range(len(events)):
        if by == "count":
            step = min(place // share, steps - 1) if share else steps - 1
        else:
            since = int(events.t[place] - events.t[0])
            step = min(since * steps // duration, steps - 1) if duration else 0
        frames[step, int(events.p[place]), int(events.y[place]), int(events.x[place])] += 1
    return frames


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 60), st.integers(1, 7), st.sampled_from(["count", "time"]), st.integers(0, 9))
def test_frames_are_counts_by_definition(count, steps, by, seed):
    events = recording(count, seed, end=1 + 40 * seed)
    frames = to_frames(events, steps, by=by)
    assert frames.dtype == torch.uint8
    assert torch.equal(frames.long(), one_by_one(events, steps, by))


@pytest.mark.parametrize("by", ["count", "time"])
def test_a_batch_gives_the_frames_of_each_recording(by):
    recordings = [recording(count, seed) for seed, count in enumerate([30, 0, 3, 17, 0])]
    frames = to_frames(EventBatch.of(recordings), 4, by=by)
    assert frames.shape == (5, 4, 2, 5, 6)
    for ours, events in zip(frames, recordings, strict=True):
        assert torch.equal(ours, to_frames(events, 4, by=by))


def test_equal_counts_leave_the_rest_to_the_last_frame():
    per_frame = to_frames(recording(23), 5).flatten(1).sum(1, dtype=torch.long)
    assert per_frame.tolist() == [4, 4, 4, 4, 7]


def test_equal_times_are_slices_of_the_duration():
    events = Events.of([0, 9, 10, 29, 30], [0] * 5, [0] * 5, [1] * 5, width=1, height=1)
    assert to_frames(events, 3, by="time")[:, 1].flatten().tolist() == [2, 1, 2]


def test_channel_one_is_on():
    events = Events.of([0], [2], [1], [1], width=4, height=3)
    assert torch.nonzero(to_frames(events, 1)).tolist() == [[0, 1, 1, 2]]


def test_binary_values():
    frames = to_frames(recording(200), 2, values="binary")
    assert frames.max() == 1
    assert torch.equal(frames, (to_frames(recording(200), 2) > 0).to(torch.uint8))


def test_clipping_is_told():
    events = Events.of([0] * 300, [0] * 300, [0] * 300, [1] * 300, width=1, height=1)
    with pytest.warns(QuadspikeWarning, match="1 of 2 pixels held more than 255 events"):
        frames = to_frames(events, 1)
    assert frames.flatten().tolist() == [0, 255]


@pytest.mark.parametrize(("old", "new"), [(128, 48), (34, 32), (34, 48), (128, 64), (7, 7)])
def test_bilinear_is_the_antialiased_one(old, new):
    frames = torch.randint(0, 30, (3, 2, old, old), dtype=torch.int32)
    ours = resize_frames(frames, new, "bilinear")
    theirs = F.interpolate(frames.double(), (new, new), mode="bilinear", antialias=True)
    assert ours.dtype == torch.float32
    assert (ours - theirs).abs().max() < 2e-3


def test_nearest_picks_as_torch_does_and_keeps_whole_numbers():
    frames = torch.randint(0, 300, (3, 128, 96), dtype=torch.int32)
    ours = resize_frames(frames, 48, "nearest")
    assert ours.dtype == torch.int32
    assert torch.equal(ours.double(), F.interpolate(frames[None].double(), (48, 48))[0])


def test_area_averages_what_is_covered():
    frames = torch.randint(0, 30, (2, 128, 96), dtype=torch.int32)
    ours = resize_frames(frames, 32, "area")
    theirs = F.avg_pool2d(frames.double(), (4, 3))
    assert (ours - theirs).abs().max() < 2e-3
    # 3 to 2: the middle pixel is shared.
    shared = resize_frames(torch.tensor([[0.0, 6.0, 0.0]]).expand(2, 3), 2, "area")
    assert shared[0].tolist() == pytest.approx([2, 2], abs=1e-3)


@pytest.mark.parametrize("resize", ["bilinear", "area"])
def test_weights_are_whole_units_that_sum_to_one(resize):
    for old, new in [(128, 48), (34, 48), (10, 3)]:
        weights = _weights(old, new, resize)
        assert (weights >= 0).all()
        assert (weights.sum(1) == 1).all()
        assert torch.equal(weights * 2**16, (weights * 2**16).round())


def test_resizing_is_exact_in_any_order_of_summation():
    """What makes a CPU and a GPU agree: no sum is rounded, so its order is of no account."""
    frames = torch.randint(0, 5000, (4, 128, 128), dtype=torch.int32)
    order = torch.randperm(128)
    weights = _weights(128, 48, "bilinear")
    shuffled = weights[:, order] @ frames.double()[:, order][:, :, order] @ weights[:, order].T
    assert torch.equal(resize_frames(frames, 48, "bilinear"), shuffled.float())


@pytest.mark.gpu
@pytest.mark.parametrize("by", ["count", "time"])
@pytest.mark.parametrize("resize", ["bilinear", "area", "nearest"])
def test_a_gpu_gives_the_same_bits(by, resize):
    sizes = (5000, 0, 3, 20_000)
    recordings = [recording(count, seed, 128, 128) for seed, count in enumerate(sizes)]
    batch = EventBatch.of(recordings)
    there = EventBatch.of([events.to("cuda") for events in recordings])
    for size in (None, 48):
        framing = Framing(10, by, "counts", size, resize)
        assert torch.equal(framing(there).cpu(), framing(batch))


def test_interpolated_frames_keep_the_mean_and_are_stored_in_levels():
    framing = Framing(2, size=48)
    events = recording(20_000, width=128, height=128)
    frames = framing(events)
    whole = Framing(2)(events)
    assert frames.mean() == pytest.approx(float(whole.double().mean()), rel=0.02)
    stored, clipped = to_bytes(frames, framing.levels)
    assert clipped == 0
    assert (stored / framing.levels - frames).abs().max() <= 0.5 / 16
    assert Framing(2, size=48, values="binary").levels == 255
    assert Framing(2, size=48, resize="nearest").levels == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "steps must be a whole number >= 1"),
        ({"by": "number"}, "way to slice"),
        ({"values": "floats"}, "kind of values"),
        ({"size": 0}, "size must be"),
        ({"size": 4, "resize": "bicubic"}, "resize"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(QuadspikeError, match=message):
        to_frames(recording(5), **{"steps": 2, **options})


@pytest.mark.parametrize("field", "txyp")
def test_fractions_are_refused_and_not_cut_off(field):
    """Times in seconds would all be 0."""
    fields = {name: [0, 1] for name in "txyp"} | {field: [0.25, 0.75]}
    with pytest.raises(QuadspikeError, match=f"^{field} must be a row of whole numbers"):
        Events.of(**fields, width=2, height=2)


def test_a_batch_is_of_one_sensor():
    with pytest.raises(QuadspikeError, match="one sensor"):
        EventBatch.of([recording(3), recording(3, width=7)])


def test_statistics():
    events = Events.of([0, 10, 40], [0, 1, 1], [0, 0, 0], [1, 0, 0], width=4, height=1)
    found = statistics(events)
    assert (found.events, found.seconds, found.rate) == (
        3,
        pytest.approx(4e-5),
        pytest.approx(75e3),
    )
    assert (found.interval_mean_us, found.interval_sd_us) == (20, 10)
    assert (found.on, found.on_off_ratio) == (1, 0.5)
    assert (found.events_per_pixel, found.busiest, found.active) == (0.75, 2, 0.5)
    with pytest.raises(QuadspikeError, match="no statistics"):
        statistics(recording(0))
    assert statistics(recording(1)).interval_mean_us == 0
