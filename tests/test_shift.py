from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from quadspike import QuadspikeError
from quadspike.data.augment.shift import RandomShift
from quadspike.data.loader import Draw

DRAW = Draw(3, 1, torch.arange(20))


def test_it_is_a_bilinear_shift_by_the_sample_s_draw():
    x = torch.randint(0, 256, (20, 2, 5, 8), dtype=torch.uint8)
    down, right = ((2 * DRAW.uniform(2, "shift") - 1) * 0.75).unbind(1)
    one, zero = torch.ones(20), torch.zeros(20)
    rows = [torch.stack([one, zero, -right * 2 / 8], 1), torch.stack([zero, one, -down * 2 / 5], 1)]
    grid = F.affine_grid(torch.stack(rows, 1), [20, 2, 5, 8], align_corners=False)
    expected = F.grid_sample(x.float(), grid, mode="bilinear", align_corners=False)
    moved = RandomShift(0.75)(x, DRAW)
    assert moved.dtype == torch.uint8
    assert (moved.float() - expected).abs().max() <= 0.51
    assert (moved != x).any()


def test_frames_of_a_clip_move_alike():
    frame = torch.randint(0, 256, (20, 1, 2, 6, 6), dtype=torch.uint8)
    moved = RandomShift()(frame.expand(-1, 3, -1, -1, -1), DRAW)
    assert torch.equal(moved[:, 0], moved[:, 2])
    assert torch.equal(moved[:, 0], RandomShift()(frame[:, 0], DRAW))


@pytest.mark.parametrize("most", [0, -1, 1.5, float("nan")])
def test_a_shift_is_part_of_a_pixel(most):
    with pytest.raises(QuadspikeError, match="a shift goes up to"):
        RandomShift(most)
