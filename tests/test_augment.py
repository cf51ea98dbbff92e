from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from quadspike import QuadspikeError
from quadspike.data.augment import (
    CIFAR10_MEAN,
    CIFAR10_STD,
    Cutout,
    Normalize,
    Pipeline,
    RandomCrop,
    RandomFlip,
    cifar_test,
    cifar_train,
)
from quadspike.data.augment.basic import pick
from quadspike.data.loader import Draw, Loader
from quadspike.data.split import Split


def draw(count, seed=0, epoch=0, first=0):
    return Draw(seed, epoch, torch.arange(first, first + count))


def bytes_of(*shape):
    """Never 0, so that what was padded or cut out shows."""
    return torch.randint(1, 256, shape, dtype=torch.uint8)


@given(st.integers(1, 2**20))
def test_a_pick_is_never_out_of_range(count):
    greatest = torch.tensor([1 - 2**-24])
    assert pick(greatest, count).item() == count - 1


def test_a_crop_is_a_window_of_the_padded_image():
    x = bytes_of(50, 3, 8, 10)
    cut = RandomCrop(padding=2)(x, draw(50))
    padded = torch.nn.functional.pad(x, (2, 2, 2, 2))
    for ours, whole in zip(cut, padded, strict=True):
        windows = whole.unfold(1, 8, 1).unfold(2, 10, 1)
        assert windows.shape[1:3] == (5, 5)
        matches = (windows == ours[:, None, None]).all((0, 3, 4))
        assert matches.any()


def test_crops_are_found_at_all_81_places_equally_often():
    count = 81 * 200
    x = torch.zeros(count, 1, 9, 9, dtype=torch.uint8)
    x[:, :, 4, 4] = 1
    cut = RandomCrop(padding=4)(x, draw(count))
    frequency = cut.flatten(2).sum((0, 1)).double()
    assert frequency.sum() == count
    # 80 degrees of freedom: a chi-square above 125 has a chance of less than one in a thousand.
    assert float(((frequency - 200) ** 2 / 200).sum()) < 125


def test_half_are_flipped_and_the_others_left():
    x = bytes_of(4000, 1, 2, 5)
    out = RandomFlip()(x, draw(4000))
    flipped = (out == x.flip(-1)).flatten(1).all(1)
    left = (out == x).flatten(1).all(1)
    assert bool((flipped | left).all())
    assert float(flipped.double().mean()) == pytest.approx(0.5, abs=0.03)


def test_a_cutout_is_one_black_box_clipped_at_the_borders():
    count, size, length = 32 * 32 * 20, 32, 16
    out = Cutout(length)(torch.ones(count, 1, size, size, dtype=torch.uint8), draw(count))
    hole = out[:, 0] == 0
    rows, columns = hole.any(2), hole.any(1)
    assert torch.equal(hole, rows[:, :, None] & columns[:, None, :])
    for side in (rows, columns):
        extent = side.sum(1)
        first = side.int().argmax(1)
        # The centre's 32 places: the box covers centre - 8 to centre + 7.
        assert int(extent.min()) == 8
        assert int(extent.max()) == 16
        assert bool(((extent == 16) | (first == 0) | (first + extent == size)).all())
    corner = hole[:, 0, 0].double().mean()
    centre = hole[:, 16, 16].double().mean()
    assert float(corner) == pytest.approx((9 / 32) ** 2, abs=0.01)
    assert float(centre) == pytest.approx((16 / 32) ** 2, abs=0.01)


def test_an_odd_cutout_has_its_length():
    out = Cutout(3)(torch.ones(500, 1, 9, 9, dtype=torch.uint8), draw(500))
    assert int((out == 0).sum((1, 2, 3)).max()) == 9


@pytest.mark.parametrize("transform", [RandomCrop(2), RandomFlip(), Cutout(4)])
def test_a_clip_is_changed_as_one(transform):
    frame = bytes_of(16, 2, 8, 8)
    clip = frame[:, None].expand(-1, 5, -1, -1, -1)
    out = transform(clip, draw(16))
    assert out.shape == clip.shape
    assert torch.equal(out, transform(frame, draw(16))[:, None].expand_as(out))


def test_normalize_gives_float_channels_last():
    x = bytes_of(4, 3, 6, 5)
    out = Normalize(CIFAR10_MEAN, CIFAR10_STD)(x, draw(4))
    mean, std = (torch.tensor(v).view(3, 1, 1) for v in (CIFAR10_MEAN, CIFAR10_STD))
    torch.testing.assert_close(out.contiguous(), (x.float() / 255 - mean) / std)
    assert out.is_contiguous(memory_format=torch.channels_last)


def test_the_order_is_the_lineage_s_and_the_hole_is_black():
    names = [type(step).__name__ for step in cifar_train("cifar100").steps]
    assert names == ["RandomCrop", "RandomFlip", "AutoAugment", "Cutout", "Normalize"]
    assert len(cifar_train("cifar10", cutout=0).steps) == 3
    assert len(cifar_train("cifar10", autoaugment=True).steps) == 5
    assert len(cifar_train("cifar100", autoaugment=False).steps) == 4
    out = cifar_train("cifar10")(torch.full((20, 3, 32, 32), 255, dtype=torch.uint8), draw(20))
    black = torch.tensor([-m / s for m, s in zip(CIFAR10_MEAN, CIFAR10_STD, strict=True)])
    hole = (out - black.view(3, 1, 1)).abs().amax(1) < 1e-6
    assert bool((hole.sum((1, 2)) >= 64).all())


def test_the_test_pipeline_changes_nothing_at_random():
    x = bytes_of(3, 3, 32, 32)
    assert torch.equal(cifar_test("cifar100")(x, draw(3)), cifar_test("cifar100")(x, draw(3, 9)))


@pytest.mark.parametrize("dataset", ["cifar10", "cifar100"])
def test_a_sample_s_augmentation_depends_on_its_draw_alone(dataset):
    split = Split("toy", bytes_of(23, 3, 32, 32), torch.zeros(23).long(), ("a",))

    def by_sample(size, epoch=1, seed=4):
        loader = Loader(split, size, cifar_train(dataset), seed=seed)
        return torch.cat([batch.inputs for batch in loader.epoch(epoch)])

    assert torch.equal(by_sample(5), by_sample(23))
    assert not torch.equal(by_sample(5), by_sample(5, epoch=2))
    assert not torch.equal(by_sample(5), by_sample(5, seed=5))


def test_the_same_draw_serves_every_step():
    x = bytes_of(6, 3, 8, 8)
    together = Pipeline((RandomFlip(), RandomCrop(1)))(x, draw(6))
    assert torch.equal(together, RandomCrop(1)(RandomFlip()(x, draw(6)), draw(6)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RandomCrop(0), "padding of a crop"),
        (lambda: Cutout(-1), "length of a cutout"),
        (lambda: Normalize((0.5,), (0.5, 0.5)), "every channel"),
        (lambda: Normalize((0.5,), (0.0,)), "std > 0"),
        (lambda: Normalize((0.5,), (0.5,))(torch.zeros(1, 1, 2, 2), draw(1)), "comes once, last"),
        (lambda: Normalize((0.5,), (0.5,))(bytes_of(1, 3, 2, 2), draw(1)), r"\[B, 1, H, W\]"),
        (lambda: cifar_train("cifar"), "did you mean 'cifar10'"),
        (lambda: cifar_test("imagenet"), "unknown dataset"),
    ],
)
def test_bad_input_is_refused(make, message):
    with pytest.raises(QuadspikeError, match=message):
        make()


@pytest.mark.gpu
def test_it_is_the_same_on_the_gpu_and_in_a_graph():
    x = bytes_of(64, 3, 32, 32)
    samples = torch.arange(64, device="cuda")
    epoch = torch.zeros((), dtype=torch.int64, device="cuda")
    on_device = x.cuda()
    pipeline = cifar_train("cifar10")
    pipeline(on_device, Draw(0, epoch, samples))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = pipeline(on_device, Draw(0, epoch, samples))
    for number in range(3):
        epoch.fill_(number)
        graph.replay()
        torch.testing.assert_close(result.cpu(), pipeline(x, Draw(0, number, samples.cpu())))
