from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from quadspike import QuadspikeError
from quadspike.data import crops
from quadspike.data.decode import decode
from tests.test_decode import picture, pixels, saved


@pytest.mark.parametrize("size", [(500, 375), (61, 97), (224, 224), (7, 300), (1, 1), (256, 256)])
def test_resizing_is_pillow_s_antialiased_bilinear(size):
    image = picture(*size)
    ours = crops.squash(pixels(image), 64).int()
    theirs = pixels(image.resize((64, 64), Image.Resampling.BILINEAR)).int()
    assert (ours - theirs).abs().max() <= 1
    assert (ours != theirs).float().mean() < 0.1


def test_resizing_keeps_the_channels_last_in_memory(tmp_path):
    decoded = decode(saved(picture(), tmp_path / "x.png"))
    assert crops.squash(decoded, 16).stride() == (1, 48, 3)


@pytest.mark.parametrize(
    ("width", "height", "expected"), [(500, 375, (256, 341)), (375, 500, (341, 256))]
)
def test_the_shorter_side_keeps_the_aspect(width, height, expected):
    assert crops.shorter_side(pixels(picture(width, height)), 256).shape[1:] == expected


def test_a_strip_that_would_grow_beyond_memory_is_refused():
    strip = torch.zeros(3, 1, 2000, dtype=torch.uint8)
    with pytest.raises(QuadspikeError, match="strip of 2000 x 1"):
        crops.shorter_side(strip, 256)


unit = st.floats(0, 1, exclude_max=True, width=32)
side = st.integers(1, 4000)


def fits(width, height, area_u, ratio_u):
    area = width * height * (0.08 + 0.92 * area_u)
    ratio = math.exp(math.log(3 / 4) + ratio_u * (math.log(4 / 3) - math.log(3 / 4)))
    wide, high = math.sqrt(area * ratio), math.sqrt(area / ratio)
    return 0.501 < wide < width + 0.499 and 0.501 < high < height + 0.499


@given(side, side, st.lists(unit, min_size=4, max_size=40))
def test_a_random_resized_crop_is_inside_and_of_the_stated_area_and_aspect(width, height, u):
    left, top, right, bottom = crops.random_resized_crop_box(width, height, u)
    wide, high = right - left, bottom - top
    assert 0 <= left < right <= width
    assert 0 <= top < bottom <= height
    # Sides are rounded to whole pixels: half of one either way.
    assert (wide - 0.5) / (high + 0.5) <= 4 / 3 or wide == 1
    assert (wide + 0.5) / (high - 0.5) >= 3 / 4 or high == 1
    assert (wide - 0.5) * (high - 0.5) <= width * height
    if any(fits(width, height, *u[place : place + 2]) for place in range(0, len(u) - 3, 4)):
        assert (wide + 0.5) * (high + 0.5) >= 0.08 * width * height
    elif (wide + 0.5) * (high + 0.5) < 0.08 * width * height:
        assert wide == width or high == height
        assert (left, top) == ((width - wide) // 2, (height - high) // 2)


@pytest.mark.parametrize(
    ("width", "height", "box"),
    [(900, 100, (383, 0, 516, 100)), (100, 900, (0, 383, 100, 516)), (100, 101, (0, 0, 100, 101))],
)
def test_when_no_try_fits_the_largest_allowed_box_in_the_middle_is_taken(width, height, box):
    whole_area_and_widest = [0.999999, 0.999999, 0.5, 0.5] * 10
    assert crops.random_resized_crop_box(width, height, whole_area_and_widest) == box


@pytest.mark.parametrize(
    ("u", "box"),
    [
        ((0.5, 0.5, 0.0, 0.0), (0, 0, 735, 735)),  # 54 % of the area
        ((0.0, 0.0, 0.0, 0.9999), (0, 673, 245, 1000)),  # 8 %, three by four
        ((0.0, 0.9999, 0.9999, 0.0), (673, 0, 1000, 245)),
    ],
)
def test_area_aspect_and_place_of_a_random_resized_crop(u, box):
    assert crops.random_resized_crop_box(1000, 1000, u) == box


def test_a_later_try_is_taken_when_the_first_does_not_fit():
    u = [0.999, 0.999, 0.0, 0.0, 0.0, 0.5, 0.0, 0.0]
    assert crops.random_resized_crop_box(100, 100, u) == (0, 0, 28, 28)


def test_random_crops_reach_every_place_and_no_other():
    places = {crops.random_crop_box(10, 8, 7, (u / 64, u / 64))[:2] for u in range(64)}
    assert {left for left, _ in places} == {0, 1, 2, 3}
    assert {top for _, top in places} == {0, 1}
