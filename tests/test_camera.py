from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from math import ceil, exp, floor

import numpy as np
import pytest
import torch

from quadspike.data.cifar import load_cifar10
from quadspike.data.events.aedat import read_aedat
from quadspike.data.events.camera import CIFAR10_DVS_CAMERA, EventCamera
from quadspike.data.events.camera_keys import separate
from quadspike.data.events.camera_screen import positions
from quadspike.data.events.camera_sensor import make_sensor
from quadspike.data.events.frames import Framing
from quadspike.data.events.statistics import recordings_table, statistics
from quadspike.errors import QuadspikeError
from quadspike.randomness import per_sample
from tests.real_data import SHARED, needs
from tests.test_camera_pixels import brute_pixel, pictures

SMALL = EventCamera(
    sensor=8, screen=32, radius=(3.0, 5.0), loops=2, noise_hz=0.0, hot_pixels=0, substeps=3
)
SAMPLES = torch.arange(6)


def edge(dark, bright, size=8):
    image = torch.full((1, 1, size, size), dark, dtype=torch.uint8)
    image[..., size // 2 :] = bright
    return image


def listed(events):
    return list(zip(*(v.tolist() for v in (events.t, events.y, events.x, events.p)), strict=True))


def same(a, b):
    return all(torch.equal(getattr(a, name), getattr(b, name)) for name in "txyp")


# The whole camera ----------------------------------------------------------------------------


def brute_weights(old, new):
    """Keys' cubic, weight by weight, in multiples of 2^-16."""
    scale, rows = old / new, []
    for out in range(new):
        weights = []
        for place in range(old):
            x = abs(place + 0.5 - (out + 0.5) * scale)
            if x <= 1:
                weights.append(1.5 * x**3 - 2.5 * x**2 + 1)
            elif x < 2:
                weights.append(-0.5 * x**3 + 2.5 * x**2 - 4 * x + 2)
            else:
                weights.append(0.0)
        units = [round(65536 * weight / sum(weights)) for weight in weights]
        units[units.index(max(units))] += 65536 - sum(units)
        rows.append(np.array(units, dtype=np.float64) / 65536)
    return np.array(rows)


def brute_record(camera, image, sample, seed):
    """A recording pixel by pixel in float64 NumPy, without noise."""
    red, green, blue = image.numpy().astype(np.int64)
    grey = (299 * red + 587 * green + 114 * blue + 500) // 1000
    weights = brute_weights(len(grey), camera.screen)
    shown = np.clip(np.floor(weights @ grey @ weights.T + 0.5), 0, 255).astype(np.int64)
    draws = per_sample(2, torch.tensor([sample]), seed, 0, "camera path")[0].tolist()
    radius = camera.radius[0] + (camera.radius[1] - camera.radius[0]) * draws[0]
    sensor = make_sensor(
        camera.sensor**2, camera.threshold, camera.threshold_spread, camera.hot_pixels, seed
    )
    refreshes = camera.refreshes
    pieces = camera.substeps if camera.response_ms else 1
    ends = [
        round(camera.duration_us * k / (refreshes * pieces)) for k in range(refreshes * pieces + 1)
    ]
    pull = 16384
    if camera.response_ms:
        piece_ms = camera.duration_us / 1000 / (refreshes * pieces)
        pull = round(16384 * (1 - exp(-piece_ms / camera.response_ms)))
    ratio = camera.screen // camera.sensor
    corners = [[1, 0], [0, 1], [-1, 0], [0, -1]]

    def place(step):
        turn = (draws[1] + step * camera.loops / refreshes) % 1.0
        leg, along = divmod(turn * 4, 1)
        here, there = np.array(corners[int(leg)]), np.array(corners[(int(leg) + 1) % 4])
        return np.floor(radius * (here + (there - here) * along) + 0.5).astype(int)

    def light(row, column, right, down):
        total = 0
        for i in range(ratio):
            for j in range(ratio):
                y = min(max(row * ratio + i - down, 0), camera.screen - 1)
                x = min(max(column * ratio + j - right, 0), camera.screen - 1)
                total += int(shown[y, x])
        return (total * 256 + ratio * ratio // 2) // (ratio * ratio)

    events = []
    places = [place(step) for step in range(refreshes + 1)]
    for row in range(camera.sensor):
        for column in range(camera.sensor):
            pixel = row * camera.sensor + column
            now = light(row, column, *places[0])
            lights = [now]
            for right, down in places[1:]:
                target = light(row, column, right, down)
                for _ in range(pieces):
                    now += floor(Fraction((target - now) * pull, 16384) + Fraction(1, 2))
                    lights.append(now)
            logs = [round(2**20 * float(np.log(value / 256 + camera.black))) for value in lights]
            on, off = int(sensor.on[pixel]), int(sensor.off[pixel])
            events += [
                (t, row, column, p)
                for t, p in brute_pixel(logs, ends, on, off, camera.refractory_us)
            ]
    return sorted(events)


@pytest.mark.parametrize(
    "camera",
    [
        replace(SMALL, sensor=6, screen=18, response_ms=0.0),
        replace(SMALL, sensor=6, screen=24, refractory_us=5000, threshold=0.1),
        replace(SMALL, sensor=5, screen=20, refractory_us=0, loops=1, radius=(2.5, 20.0)),
    ],
)
def test_a_recording_is_what_pixel_by_pixel_gives(camera):
    images = pictures(2, 3, 5, seed=3)
    samples = torch.tensor([7, 1])
    for image, sample, events in zip(
        images, samples.tolist(), separate(camera.record(images, samples, seed=11)), strict=True
    ):
        assert len(events) > 50
        assert listed(events) == brute_record(camera, image, sample, 11)


def test_a_picture_that_stands_still_makes_no_events():
    camera = replace(SMALL, radius=(0.0, 0.0))
    assert len(camera.record(pictures(), SAMPLES, 0).t) == 0


def test_noise_alone_comes_at_its_rate_and_share():
    camera = EventCamera(
        sensor=32, screen=32, radius=(0.0, 0.0), loops=10, noise_hz=2.0, hot_pixels=3, hot_hz=40.0
    )
    recordings = separate(camera.record(pictures(20), torch.arange(20), 0))
    counts = [len(events) for events in recordings]
    expected = 2.0 * (1024 * 2.0 + 3 * 40.0)
    assert np.mean(counts) == pytest.approx(expected, rel=0.02)
    assert np.std(counts) == pytest.approx(expected**0.5, rel=0.5)
    assert recordings[0].p.double().mean() == pytest.approx(0.83, abs=0.03)
    hot = [
        torch.bincount(e.y.long() * 32 + e.x, minlength=1024).topk(3).indices.sort().values
        for e in recordings
    ]
    assert all(torch.equal(found, hot[0]) for found in hot)
    assert not same(recordings[0], recordings[1])


def test_twice_the_contrast_or_half_the_threshold_gives_twice_the_events():
    camera = replace(SMALL, black=10.0, threshold=0.05, threshold_spread=0.0, refractory_us=0)
    # (30 + 10) / (10 + 10) = 2 and (30 + 10) / (0 + 10) = 4.
    weak, strong = (len(camera.record(edge(d, 30), SAMPLES[:1], 0).t) for d in (10, 0))
    assert strong / weak == pytest.approx(2, rel=0.1)
    halved = replace(camera, threshold=0.025)
    assert len(halved.record(edge(10, 30), SAMPLES[:1], 0).t) / weak == pytest.approx(2, rel=0.1)


def test_a_bright_edge_makes_on_events_only_while_it_comes():
    camera = replace(SMALL, response_ms=0.0, radius=(5.0, 5.0))
    draws = per_sample(2, SAMPLES[:1], 0, 0, "camera path").double()
    right, _ = positions(torch.tensor([5.0]).double(), draws[:, 1], 2, camera.refreshes)
    moves = right[0].diff()
    events = separate(camera.record(edge(0, 255), SAMPLES[:1], 0))[0]
    refresh = ((events.t - 1).clamp(min=0) * camera.refreshes // camera.duration_us).long()
    # The bright half is on the right: it comes when the picture moves left.
    assert {-1, 1} <= set(moves[refresh].sign().tolist()) <= {-1, 1}
    assert torch.equal(events.p.bool(), moves[refresh] < 0)


@pytest.mark.parametrize("dead", [1000, 30000])
def test_no_pixel_speaks_within_its_dead_time_noise_included(dead):
    camera = replace(SMALL, refractory_us=dead, noise_hz=30.0, threshold=0.05, hot_pixels=2)
    free = replace(camera, refractory_us=0)
    images = pictures()
    total = 0
    for events in separate(camera.record(images, SAMPLES, 0)):
        pixel = events.y.long() * 8 + events.x
        order = torch.argsort(pixel, stable=True)
        gaps = events.t[order].diff()[pixel[order].diff() == 0]
        assert int(gaps.min()) >= dead
        total += len(events)
    assert total < len(free.record(images, SAMPLES, 0).t)


def test_a_recording_does_not_depend_on_its_batch():
    camera = replace(SMALL, noise_hz=5.0, hot_pixels=2)
    images = pictures()
    together = separate(camera.record(images, SAMPLES, 5))
    order = torch.tensor([3, 0, 5])
    for place, events in zip(
        order.tolist(), separate(camera.record(images[order], SAMPLES[order], 5)), strict=True
    ):
        assert same(events, together[place])
        assert same(
            camera.record(images[place : place + 1], SAMPLES[place : place + 1], 5),
            together[place],
        )


@pytest.mark.gpu
def test_a_recording_does_not_depend_on_its_device():
    images = pictures(3, 3, 32)
    camera = replace(CIFAR10_DVS_CAMERA, noise_hz=1.0)
    here, there = (camera.record(images.to(device), SAMPLES[:3], 5) for device in ("cpu", "cuda"))
    assert torch.equal(here.t, there.t.cpu())
    framing = Framing(10, size=48)
    assert torch.equal(framing(here), framing(there).cpu())


def test_seed_and_sample_both_matter():
    images = pictures(1)
    base = SMALL.record(images, torch.tensor([0]), 0)
    assert same(base, SMALL.record(images, torch.tensor([0]), 0))
    for sample, seed in ((1, 0), (0, 1)):
        other = SMALL.record(images, torch.tensor([sample]), seed)
        assert listed(other) != listed(base)


def test_events_stand_in_the_stated_order_inside_the_recording():
    camera = replace(SMALL, noise_hz=20.0)
    for events in separate(camera.record(pictures(), SAMPLES, 0)):
        events.check()
        assert listed(events) == sorted(listed(events))
        assert int(events.t[0]) >= 0
        assert int(events.t[-1]) <= camera.duration_us


def test_a_recording_may_be_empty_between_others():
    images = torch.cat([pictures(1), torch.zeros(1, 3, 8, 8, dtype=torch.uint8), pictures(1)])
    lengths = [len(events) for events in separate(SMALL.record(images, SAMPLES[:3], 0))]
    assert lengths[0]
    assert lengths[1] == 0
    assert lengths[2]


@pytest.mark.parametrize(
    ("by", "values", "size"), [("count", "counts", 4), ("time", "binary", None)]
)
def test_frames_are_those_of_the_recordings(by, values, size):
    images = pictures()
    recorded, framing = SMALL.record(images, SAMPLES, 3), Framing(5, by, values, size)
    for clip, events in zip(framing(recorded), separate(recorded), strict=True):
        assert torch.equal(clip, framing(events))


def test_the_defaults_are_cifar10_dvs_s_protocol():
    camera = EventCamera()
    assert (camera.sensor, camera.screen, camera.refreshes) == (128, 512, 72)
    assert camera.duration_us == 1_200_000


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"sensor": 0}, "sensor must be a whole number"),
        ({"screen": 500}, "got 500 and 128"),
        ({"radius": (20.0, 16.0)}, "radius"),
        ({"radius": 4.0}, "radius"),
        ({"threshold": 0.0}, "threshold must lie in"),
        ({"black": -1.0}, "black must lie in"),
        ({"noise_hz": float("nan")}, "noise_hz must lie in"),
        ({"noise_on": 1.5}, "noise_on must lie in"),
        ({"refractory_us": 0.5}, "refractory_us must be a whole number"),
        ({"hot_pixels": 20000}, "0..16384"),
        ({"loop_ms": 1.0}, "from one refresh"),
        ({"loop_ms": 1e6, "loops": 2}, "to 1000 s"),
        ({"refresh_hz": 1e6}, "a substep at least"),
    ],
)
def test_a_camera_that_cannot_be_is_refused(wrong, message):
    with pytest.raises(QuadspikeError, match=message):
        EventCamera(**wrong)


def test_images_and_samples_are_checked():
    with pytest.raises(QuadspikeError, match="uint8"):
        SMALL.record(pictures().float(), SAMPLES, 0)
    with pytest.raises(QuadspikeError, match="1 or 3"):
        SMALL.record(pictures(channels=2), SAMPLES, 0)
    with pytest.raises(QuadspikeError, match="samples must be int64"):
        SMALL.record(pictures(), SAMPLES[:2], 0)


# Beside the real thing -----------------------------------------------------------------------


@needs("events/dvs128")
def test_the_table_holds_simulated_beside_real():
    simulated = separate(SMALL.record(pictures(), SAMPLES, 0))
    folder = SHARED / "events" / "dvs128"
    real = [(path.stem, read_aedat(path)) for path in sorted(folder.glob("*.aedat"))]
    table = recordings_table(simulated, real)
    assert len(table.columns) == 3 + len(real)
    rows = dict(zip(table.columns[0].cells, table.columns[3].cells, strict=True))
    first = statistics(real[0][1])
    assert rows["events"] == f"{first.events:,}"
    assert rows["ON for each OFF"] == f"{first.on_off_ratio:.3f}"


@pytest.mark.slow
@needs("cifar10")
def test_cifar10_gives_as_many_events_as_cifar10_dvs(tmp_path):
    sheets = SHARED / "cifar10"
    subprocess.run([sys.executable, str(sheets / "unpack.py"), str(tmp_path)], check=True)
    train, _ = load_cifar10(tmp_path)
    chosen = torch.arange(0, len(train), ceil(len(train) / 160))
    recordings = [
        events
        for part in chosen.split(16)
        for events in separate(CIFAR10_DVS_CAMERA.record(train.inputs[part], part, 0))
    ]
    found = [statistics(events) for events in recordings]
    # CIFAR10-DVS: 204,979 events on average.
    assert np.mean([one.events for one in found]) == pytest.approx(2e5, rel=0.15)
    assert np.mean([one.seconds for one in found]) == pytest.approx(1.2, rel=0.02)
