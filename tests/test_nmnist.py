from __future__ import annotations

import numpy as np
import pytest
import torch

from quadspike import QuadspikeError
from quadspike.data.events.form import Events
from quadspike.data.events.frames import EventBatch, to_frames
from quadspike.data.events.nmnist import load_nmnist, parse_nmnist, read_nmnist
from tests.real_data import SHARED, needs

DATA = SHARED / "events" / "nmnist"


def record(x, y, p, t):
    return bytes([x, y, p << 7 | t >> 16, t >> 8 & 255, t & 255])


def random_recording(seed, count=60):
    random = np.random.default_rng(seed)
    times = np.sort(random.integers(0, 300_000, count))
    return b"".join(
        record(*map(int, random.integers(0, 34, 2)), int(random.integers(2)), int(t)) for t in times
    )


def subset(samples):
    """Some samples of the packed real recordings, as one batch, and their labels."""
    with np.load(DATA / "subset.npz") as packed:
        offsets, label = packed["offsets"], packed["label"]
        t, x, y, p = (packed[name] for name in "txyp")
    recordings = []
    for sample in samples:
        part = slice(offsets[sample], offsets[sample + 1])
        fields = (t[part].astype(np.int64), x[part], y[part], p[part])
        recordings.append(Events.of(*fields, width=34, height=34))
    return EventBatch.of(recordings), label[samples]


def test_the_bits_of_a_record():
    data = record(33, 0, 1, 2**23 - 2) + record(0, 33, 0, 2**23 - 1)
    events = parse_nmnist(data, "two.bin")
    assert events.t.tolist() == [2**23 - 2, 2**23 - 1]
    assert (events.x.tolist(), events.y.tolist(), events.p.tolist()) == ([33, 0], [0, 33], [1, 0])
    assert (events.width, events.height) == (34, 34)
    events.check()


def test_an_overflow_puts_what_follows_later_and_is_no_event():
    data = (
        record(1, 1, 1, 8000)
        + record(0, 240, 0, 0)
        + record(2, 2, 1, 5)
        + record(0, 240, 0, 0)
        + record(3, 3, 1, 6)
    )
    events = parse_nmnist(data, "overflow.bin")
    assert events.t.tolist() == [8000, 8192 + 5, 2 * 8192 + 6]
    assert events.x.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "no events in 0 bytes"),
        (bytes(7), "cut short: 7 bytes.*begins at byte 5"),
        (record(0, 240, 0, 0), "no events"),
        (
            record(0, 240, 0, 0) + record(1, 1, 1, 1) + record(34, 2, 0, 2),
            "byte 10.*column 34, row 2",
        ),
        (record(1, 1, 1, 5) + record(1, 1, 1, 4), "backwards at byte 5: 5 then 4"),
    ],
)
def test_what_is_no_recording_is_named(data, message):
    with pytest.raises(QuadspikeError, match=message) as caught:
        parse_nmnist(data, "some.bin")
    assert "some.bin" in str(caught.value)


def test_events_can_be_put_in_order():
    events = parse_nmnist(record(1, 0, 1, 5) + record(2, 0, 1, 4), "late.bin", backwards="sort")
    assert (events.t.tolist(), events.x.tolist()) == ([4, 5], [2, 1])


def official(root, per_class=2):
    for part in ("Train", "Test"):
        for digit in range(10):
            folder = root / part / str(digit)
            folder.mkdir(parents=True)
            for number in (2, 10)[:per_class]:
                seed = digit * 100 + number + (part == "Test") * 5000
                (folder / f"{number}.bin").write_bytes(random_recording(seed))
    return root


def test_the_official_folders(tmp_path):
    seen = []
    train, test = load_nmnist(
        official(tmp_path), 4, progress=lambda done, total: seen.append((done, total))
    )
    assert train.inputs.shape == (20, 4, 2, 34, 34)
    assert train.labels.tolist() == sorted([*range(10), *range(10)])
    assert (train.name, test.name) == ("nmnist/train", "nmnist/test")
    # Numbers sort by value: 2 before 10.
    expected = to_frames(parse_nmnist(random_recording(302), ""), 4)
    assert torch.equal(train.inputs[6], expected)
    assert torch.equal(test.inputs[7], to_frames(parse_nmnist(random_recording(5310), ""), 4))
    assert seen == [(n, 20) for n in range(1, 21)] * 2
    again, _ = load_nmnist(tmp_path, 4, progress=lambda *_: pytest.fail("built twice"))
    assert torch.equal(again.inputs, train.inputs)
    # The frames are mapped from the cache, but nothing written to them reaches it.
    again.inputs.zero_()
    assert torch.equal(load_nmnist(tmp_path, 4)[0].inputs, train.inputs)


def test_shadows_of_files_that_a_mac_left_are_passed_over(tmp_path):
    root = official(tmp_path, per_class=1)
    (root / "Train" / "3" / "._2.bin").write_bytes(b"\0\5\x16\7")
    assert len(load_nmnist(root, 4)[0]) == 10


def test_a_missing_class_is_named(tmp_path):
    root = official(tmp_path, per_class=1)
    (root / "Test" / "7" / "2.bin").unlink()
    with pytest.raises(QuadspikeError, match=r"Test/7: no \.bin files"):
        load_nmnist(root, 4)


@needs("events/nmnist")
def test_native_files():
    counts = {"nmnist_one_03263.bin": 5999, "sample_nmnist.bin": 4325}
    for name, count in counts.items():
        events = read_nmnist(DATA / name)
        events.check()
        assert len(events) == count
        assert 250_000 < events.duration < 350_000
        assert 0.4 < float(events.p.double().mean()) < 0.6


@needs("events/nmnist")
def test_real_digits_stand_upright():
    """A seven is wide at its top and a six at its bottom: turned round they would trade places.
    Nor are they mirror images: the stem of a seven leans to the lower left."""
    with np.load(DATA / "subset.npz") as packed:
        label = packed["label"]
    columns = torch.arange(34, dtype=torch.float64)

    def middle_and_spread(part):
        weight = part.sum(0) / part.sum()
        middle = (weight * columns).sum()
        return float(middle), float((weight * (columns - middle) ** 2).sum().sqrt())

    found = {}
    for digit in (6, 7):
        samples = np.flatnonzero(label == digit)[:40]
        picture = to_frames(subset(samples)[0], 1).double().sum((0, 1, 2))
        found[digit] = middle_and_spread(picture[6:14]), middle_and_spread(picture[20:28])
    (top_of_six, bottom_of_six), (top_of_seven, bottom_of_seven) = found[6], found[7]
    assert bottom_of_six[1] > 1.1 * top_of_six[1]
    assert top_of_seven[1] > 1.1 * bottom_of_seven[1]
    assert bottom_of_seven[0] + 1 < top_of_seven[0]
