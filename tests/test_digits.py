from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from quadspike import create_model
from quadspike.data import digits
from quadspike.data.digits import DIGITS_CAMERA, load_digits, load_event_digits
from quadspike.data.events.transforms import dvs_test
from quadspike.data.loader import Loader
from quadspike.errors import QuadspikeError
from quadspike.randomness import permutation

COUNTS = [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


def test_the_digits_are_those_of_the_repository():
    train, test = load_digits()
    both = torch.cat([train.labels, test.labels])
    assert torch.bincount(both).tolist() == COUNTS
    assert (train.name, test.name) == ("digits/train", "digits/test")
    values = torch.cat([train.inputs, test.inputs]).unique().tolist()
    assert values == [(ink * 255 + 8) // 16 for ink in range(17)]


def test_the_first_image_is_a_zero_upright():
    train, test = load_digits()
    ink = [0, 0, 5, 13, 9, 1, 0, 0]
    row = torch.tensor([(value * 255 + 8) // 16 for value in ink], dtype=torch.uint8)
    zeros = [split.inputs[split.labels == 0] for split in (train, test)]
    assert any(bool((images[:, 0, 0] == row).all(1).any()) for images in zeros)


def test_the_split_is_fixed_disjoint_and_stratified():
    train, test = load_digits()
    tested = torch.bincount(test.labels).tolist()
    assert tested == [round(count / 5) for count in COUNTS]
    whole, chosen = digits._load()
    for digit in range(10):
        places = torch.nonzero(whole.labels == digit).flatten()
        drawn = permutation(len(places), 0, 0, f"digits {digit}")[: tested[digit]]
        expected = torch.zeros(len(places), dtype=torch.bool)
        expected[drawn] = True
        assert torch.equal(chosen[places], expected)
    assert torch.equal(test.inputs, whole.inputs[chosen])
    assert torch.equal(train.inputs, whole.inputs[~chosen])


def test_a_file_that_was_tampered_with_is_refused(tmp_path, monkeypatch):
    data = bytearray(digits._FILE.read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "digits.npz").write_bytes(data)
    monkeypatch.setattr(digits, "_FILE", tmp_path / "digits.npz")
    with pytest.raises(QuadspikeError, match=r"digits\.npz: not the file"):
        load_digits()
    monkeypatch.setattr(digits, "_FILE", tmp_path / "absent.npz")
    with pytest.raises(QuadspikeError, match=r"absent\.npz: cannot be read"):
        load_digits()


def test_event_digits_are_named_simulated_and_split_alike():
    camera = replace(DIGITS_CAMERA, sensor=8, screen=16, radius=(2.0, 2.0), loops=1)
    train, test = load_event_digits(2, camera=camera)
    assert train.name == "digits (simulated events)/train"
    assert test.name == "digits (simulated events)/test"
    assert train.inputs.shape == (1438, 2, 2, 8, 8)
    plain = load_digits()
    assert torch.equal(train.labels, plain[0].labels)
    assert torch.equal(test.labels, plain[1].labels)
    again, _ = load_event_digits(2, camera=camera)
    other, _ = load_event_digits(2, seed=1, camera=camera)
    assert torch.equal(again.inputs, train.inputs)
    assert not torch.equal(other.inputs, train.inputs)


@pytest.mark.slow
def test_a_small_network_learns_event_digits():
    train, test = load_event_digits(4)
    model = create_model("cnn", in_channels=2, timesteps=4, seed=0)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    loader = Loader(train, 64, dvs_test(levels=train.levels), shuffle=True)
    for epoch in range(3):
        for batch in loader.epoch(epoch):
            loss = F.cross_entropy(model(batch.inputs).mean(0), batch.labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        hits = [
            model(batch.inputs).mean(0).argmax(1) == batch.labels
            for batch in Loader(test, 128, dvs_test(levels=test.levels)).epoch()
        ]
    # Chance is 10 %.
    assert torch.cat(hits).float().mean() > 0.6
