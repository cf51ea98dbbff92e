from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import floor

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from quadspike.data.events.camera_noise import clear_of
from quadspike.data.events.camera_pixels import Pixels, Spikes
from quadspike.data.events.camera_screen import Scene, luma, positions, show


def pictures(count=6, channels=3, size=8, seed=0):
    source = torch.Generator().manual_seed(seed)
    shape = (count, channels, size, size)
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=source)


# One pixel by hand ---------------------------------------------------------------------------


def brute_pixel(levels, ends, on, off, dead):
    """Each crossing in turn, in exact fractions."""
    reference, woke, events = levels[0], 0, []
    for piece, (before, after) in enumerate(pairwise(levels)):
        start, length = ends[piece], ends[piece + 1] - ends[piece]
        while True:
            if after - reference >= on:
                reference, polarity = reference + on, 1
            elif reference - after >= off:
                reference, polarity = reference - off, 0
            else:
                break
            moment = start + Fraction(reference - before, after - before) * length
            if moment >= woke:
                events.append((floor(moment), polarity))
                woke = moment + dead
        if events:
            # From one piece to the next a pixel remembers the stamp.
            woke = min(woke, events[-1][0] + dead)
    return events


def watch(levels, ends, on, off, dead):
    """The same through `Pixels`, for pixels side by side: `levels` `[pieces + 1, pixels]`."""
    steps = torch.tensor(levels, dtype=torch.int32)[:, None]
    thresholds = (torch.tensor(v, dtype=torch.int32) for v in (on, off))
    pixels = Pixels(steps[0], *thresholds, dead)
    found = []
    for place, level in enumerate(steps[1:]):
        spikes = pixels.see(level, ends[place], ends[place + 1] - ends[place])
        found += zip(*(field.tolist() for field in spikes), strict=True)
    return sorted(found)


walks = st.lists(st.lists(st.integers(0, 400), min_size=3, max_size=3), min_size=2, max_size=9)


@settings(max_examples=150, deadline=None)
@given(walks, st.integers(7, 120), st.integers(7, 120), st.integers(0, 3000), st.integers(1, 5000))
def test_pixels_report_what_crossing_by_crossing_gives(levels, on, off, dead, length):
    ends = [place * length + place * place for place in range(len(levels))]
    ons, offs = [on, on + 3, on + 50], [off, off + 1, off]
    expected = [
        (pixel, t, p)
        for pixel in range(3)
        for t, p in brute_pixel([row[pixel] for row in levels], ends, ons[pixel], offs[pixel], dead)
    ]
    assert watch(levels, ends, ons, offs, dead) == sorted(expected)


def test_events_lie_on_the_line_and_the_rest_is_remembered():
    # Up by 25 in 100 us over thresholds of 10: at 40 and 80 us; 5 remain, so 5 more make one.
    assert watch([[0], [25], [30]], [0, 100, 200], [10], [10], 0) == [
        (0, 40, 1),
        (0, 80, 1),
        (0, 200, 1),
    ]


def test_a_pixel_in_its_dead_time_stays_silent_but_follows():
    assert watch([[0], [50], [60]], [0, 100, 200], [10], [10], 45) == [
        (0, 20, 1),
        (0, 80, 1),
        (0, 200, 1),
    ]


@pytest.mark.parametrize("dead", [0, 700])
def test_inverted_light_inverts_polarity(dead):
    levels = np.random.default_rng(0).integers(0, 900, (20, 16)).tolist()
    inverted = [[-level for level in row] for row in levels]
    on, off = list(range(50, 66)), list(range(70, 86))
    ends = list(range(0, 20000, 1000))
    straight = watch(levels, ends, on, off, dead)
    assert straight
    assert watch(inverted, ends, off, on, dead) == [(i, t, 1 - p) for i, t, p in straight]


def test_time_reversed_swaps_on_and_off():
    levels = (np.random.default_rng(1).integers(0, 900, (40, 64)) // 7).tolist()
    on = off = [10] * 64
    ends = list(range(0, 40000, 1000))
    forth = watch(levels, ends, on, off, 0)
    back = watch(levels[::-1], ends, on, off, 0)
    ons, back_offs = sum(p for *_, p in forth), sum(1 - p for *_, p in back)
    assert ons == pytest.approx(back_offs, rel=0.05)


def test_noise_keeps_exactly_the_dead_time():
    def spikes(*places):
        pixel, t = torch.tensor(places).unbind(1)
        return Spikes(pixel, t, torch.ones(len(places), dtype=torch.uint8))

    real = spikes((0, 500), (1, 0), (1, 999))
    noise = spikes((0, 400), (0, 401), (0, 600), (0, 599), (0, 500), (1, 100), (2, 500), (2, 599))
    kept = clear_of(noise, real, dead=100, duration=999)
    assert sorted(zip(kept.pixel.tolist(), kept.t.tolist(), strict=True)) == [
        (0, 400),
        (1, 100),
        (2, 500),
    ]
    free = clear_of(noise, real, dead=0, duration=999)
    assert len(free.t) == 8


# The screen ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("old", "new"), [(8, 32), (32, 512), (7, 30), (64, 32)])
def test_the_picture_is_scaled_as_pillow_does(old, new):
    # Away from black and white: Pillow clips between its two passes, we once at the end.
    grey = pictures(1, 1, old)[0, 0] // 2 + 64
    expected = Image.fromarray(grey.numpy()).resize((new, new), Image.Resampling.BICUBIC)
    got = show(grey[None].int(), new)[0]
    assert (got - torch.from_numpy(np.array(expected)).int()).abs().max() <= 1


def test_luma_is_pillow_s():
    image = pictures(1, 3, 16)[0]
    expected = np.array(Image.fromarray(image.permute(1, 2, 0).numpy()).convert("L"))
    assert (luma(image[None])[0] - torch.from_numpy(expected).int()).abs().max() <= 1


def test_the_picture_is_upright_and_moves_right_and_down():
    image = torch.zeros(1, 1, 8, 8, dtype=torch.uint8)
    image[0, 0, 1, 5] = 255
    scene = Scene(image, screen=32, sensor=8, margin=8)
    for right, down in ((0, 0), (4, 0), (0, 8), (-8, 4)):
        seen = scene.seen(torch.tensor([right]), torch.tensor([down])).view(8, 8)
        brightest = int(seen.argmax())
        assert (brightest // 8, brightest % 8) == (1 + down // 4, 5 + right // 4)


def test_the_path_is_a_closed_diamond():
    right, down = positions(torch.tensor([18.0]).double(), torch.zeros(1).double(), 6, 72)
    assert set((right.abs() + down.abs()).flatten().tolist()) == {18}
    assert torch.equal(right[:, :12], right[:, 12:24])
    assert (int(right[0, 0]), int(right[0, -1])) == (18, 18)
    assert (int(down[0, 3]), int(right[0, 6]), int(down[0, 9])) == (18, -18, -18)
