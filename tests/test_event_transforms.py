from __future__ import annotations

import math

import pytest
import torch

from quadspike import QuadspikeError
from quadspike.data.augment import RandomCrop, RandomFlip
from quadspike.data.events.transforms import RandomRoll, RandomRotation, dvs_test, dvs_train
from quadspike.data.loader import Draw, Loader
from quadspike.data.split import Split


def clips(batch=6, time=3, size=12, dtype=torch.uint8):
    return torch.randint(0, 200, (batch, time, 2, size, size)).to(dtype)


def draw(batch=6, seed=1, epoch=0):
    return Draw(seed, epoch, torch.arange(batch))


ALL = {
    "flip": RandomFlip(),
    "rotate": RandomRotation(10),
    "roll": RandomRoll(5),
    "crop": RandomCrop(4),
}


@pytest.mark.parametrize("name", ALL)
def test_all_frames_of_a_clip_move_alike(name):
    frame = clips(time=1)
    alike = frame.expand(-1, 3, -1, -1, -1)
    out = ALL[name](alike, draw())
    assert out.shape == alike.shape
    assert torch.equal(out[:, 0], out[:, 1])
    assert torch.equal(out[:, 0], out[:, 2])


@pytest.mark.parametrize("name", ALL)
def test_clips_are_drawn_apart_and_by_their_own_number(name):
    same = clips(batch=1).expand(40, -1, -1, -1, -1)
    out = ALL[name](same, draw(40))
    assert len(torch.unique(out.flatten(1), dim=0)) > 1
    alone = ALL[name](same[:1], Draw(1, 0, torch.tensor([17])))
    assert torch.equal(alone[0], out[17])
    assert not torch.equal(out, ALL[name](same, draw(40, epoch=1)))


def test_roll_goes_round_the_edge_by_up_to_its_most():
    x = torch.zeros(2000, 1, 2, 12, 12, dtype=torch.uint8)
    x[..., 6, 6] = 1
    out = RandomRoll(5)(x, draw(2000))
    places = torch.nonzero(out[:, 0, 0])[:, 1:]
    assert len(places) == 2000
    assert places.min(0).values.tolist() == [1, 1]
    assert places.max(0).values.tolist() == [11, 11]
    # Eleven shifts each way, all about as often, and the two axes apart.
    seen = torch.bincount((places[:, 0] - 1) * 11 + places[:, 1] - 1, minlength=121)
    assert seen.min() > 3
    corner = torch.zeros(50, 1, 2, 12, 12)
    corner[..., 0, 0] = 1
    assert (RandomRoll(5)(corner, draw(50)).sum((1, 2, 3, 4)) == 2).all()


def test_roll_is_torch_roll():
    x = clips()
    out = RandomRoll(5)(x, draw())
    shifts = (draw().uniform(2, "roll") * 11).long() - 5
    for clip, moved, (down, right) in zip(x, out, shifts.tolist(), strict=True):
        assert torch.equal(moved, clip.roll((down, right), (-2, -1)))


def test_rotation_turns_by_its_angle_about_the_centre():
    x = torch.zeros(300, 1, 2, 41, 41)
    x[..., 20, 36:39] = 1
    out = RandomRotation(10)(x, draw(300))[:, 0, 0]
    rows = torch.arange(41.0)
    mass = out.sum((1, 2))
    down = (out.sum(2) * rows).sum(1) / mass - 20
    right = (out.sum(1) * rows).sum(1) / mass - 20
    angles = torch.atan2(down, right) * 180 / math.pi
    assert 9 < angles.max() < 10.1
    assert -10.1 < angles.min() < -9
    assert angles.mean().abs() < 1
    assert torch.allclose(torch.hypot(down, right), torch.tensor(17.0), atol=0.1)
    assert mass.min() > 2.5


def test_rotation_does_not_shear_what_is_not_square():
    x = torch.zeros(20, 1, 1, 21, 41)
    x[..., 10, 30] = 1
    x[..., 2, 20] = 1
    out = RandomRotation(90)(x, draw(20))[:, 0, 0]
    rows, columns = torch.arange(21.0) - 10, torch.arange(41.0) - 20
    distance = torch.hypot(rows[:, None], columns[None])
    # Two points at distance 8 and 10 stay there; what leaves the picture is gone.
    far = (out * ((distance - 9).abs() > 2.5)).sum()
    assert far == 0


@pytest.mark.parametrize("style", ["paper", "tet", "crop"])
def test_pipelines_end_time_first_in_events(style):
    x = clips()
    out = dvs_train(style, levels=16)(x, draw())
    assert out.shape == (3, 6, 2, 12, 12)
    assert out.dtype == torch.float32
    assert out.is_contiguous()
    assert out.max() <= x.max() / 16


def test_the_test_pipeline_only_changes_the_layout():
    x = clips()
    assert torch.equal(dvs_test(levels=4)(x, draw()), x.transpose(0, 1).float() / 4)


def test_a_loader_gives_what_a_model_takes():
    split = Split("toy", clips(8), torch.arange(8) % 2, ("a", "b"), levels=1)
    batches = list(Loader(split, 4, dvs_train("tet", levels=split.levels), shuffle=True).epoch(3))
    assert [tuple(batch.inputs.shape) for batch in batches] == [(3, 4, 2, 12, 12)] * 2


def test_bad_input():
    with pytest.raises(QuadspikeError, match="style"):
        dvs_train("strong", levels=1)
    with pytest.raises(QuadspikeError, match=r"clips must be \[B, T, C, H, W\]"):
        dvs_test(levels=1)(torch.zeros(2, 3, 4, 4), draw(2))
    with pytest.raises(QuadspikeError, match="roll must be"):
        RandomRoll(0)
    with pytest.raises(QuadspikeError, match="levels must be"):
        dvs_train(levels=0)
    with pytest.raises(QuadspikeError, match="0 to 180 degrees"):
        RandomRotation(math.nan)
