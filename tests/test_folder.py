from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from quadspike import QuadspikeError
from quadspike.data.folder import load_folder
from tests.real_data import SHARED, needs

MINI = SHARED / "imagenet-mini"


def level(path: Path, grey: int, **options) -> None:
    """A picture of one grey level, which tells where it came from."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (20, 10), (grey,) * 3).save(path, **options)


@pytest.fixture
def pets(tmp_path) -> Path:
    """Ten cats and five dogs, no split."""
    for number in range(10):
        level(tmp_path / "pets" / "cat" / f"{number}.png", number)
    for number in range(5):
        level(tmp_path / "pets" / "dog" / f"{number}.png", 100 + number)
    return tmp_path / "pets"


@pytest.fixture
def parted(tmp_path) -> Path:
    for split, grey in (("train", 0), ("test", 50)):
        for name in ("cat", "dog"):
            level(tmp_path / "parted" / split / name / "a.png", grey)
            level(tmp_path / "parted" / split / name / "b.png", grey + 1)
    return tmp_path / "parted"


def greys(split) -> list[int]:
    return split.inputs[:, 0, 0, 0].tolist()


def test_folders_that_say_what_is_held_out(parted):
    train, test = load_folder(parted, 8)
    assert (greys(train), greys(test)) == ([0, 1, 0, 1], [50, 51, 50, 51])
    assert train.labels.tolist() == test.labels.tolist() == [0, 0, 1, 1]
    assert train.classes == test.classes == ("cat", "dog")
    assert train.inputs.shape == (4, 3, 8, 8)
    assert (train.name, test.name) == (str(parted / "train"), str(parted / "test"))


def test_a_folder_held_out_by_name(parted):
    (parted / "test").rename(parted / "unseen")
    _, test = load_folder(parted, 8, held_out="unseen")
    assert greys(test) == [50, 51, 50, 51]


def test_both_test_and_val_must_be_chosen_between(parted):
    for name in ("cat", "dog"):
        level(parted / "val" / name / "a.png", 90)
    with pytest.raises(QuadspikeError, match="both test and val"):
        load_folder(parted, 8)
    assert greys(load_folder(parted, 8, held_out="val")[1]) == [90, 90]


def test_a_share_of_every_class_is_held_out(pets):
    train, test = load_folder(pets, 8, held_out=0.2)
    assert train.labels.bincount().tolist() == [8, 4]
    assert test.labels.bincount().tolist() == [2, 1]
    assert sorted(greys(train) + greys(test)) == [*range(10), *range(100, 105)]
    assert all((grey >= 100) == label for grey, label in zip(greys(test), test.labels, strict=True))
    assert "held out" in test.name


def test_the_share_is_drawn_by_seed_and_name(pets):
    def held(seed):
        return greys(load_folder(pets, 4, held_out=0.5, seed=seed)[1])

    first = held(0)
    assert held(0) == first
    assert len({tuple(held(seed)) for seed in range(4)}) > 1
    level(pets / "ant" / "0.png", 200)
    level(pets / "ant" / "1.png", 201)
    assert [grey for grey in held(0) if grey < 200] == first


def test_a_share_of_the_training_folder(parted):
    train, test = load_folder(parted, 8, held_out=0.5)
    assert sorted(greys(train) + greys(test)) == [0, 0, 1, 1]


def test_a_class_may_be_called_train(tmp_path):
    for name in ("plane", "train"):
        for number in range(2):
            level(tmp_path / name / f"{number}.png", number)
    assert load_folder(tmp_path, 4, held_out=0.5)[0].classes == ("plane", "train")


def test_any_format_any_case_one_size_and_channel(tmp_path):
    for number, suffix in enumerate(("PNG", "jpg", "JPEG", "gif", "bmp", "tiff", "webp", "ppm")):
        level(tmp_path / "a" / f"{number}.{suffix}", 40)
        level(tmp_path / "b" / f"{number}.{suffix}", 200)
    train, test = load_folder(tmp_path, 6, 1, held_out=0.25)
    assert (train.inputs.shape, test.inputs.shape) == ((12, 1, 6, 6), (4, 1, 6, 6))
    expected = torch.where(train.labels == 0, 40, 200).view(-1, 1, 1, 1)
    assert (train.inputs.int() - expected).abs().max() <= 2


def test_the_aspect_is_given_up_and_nothing_is_cut_off(tmp_path):
    halves = np.zeros((10, 40, 3), dtype=np.uint8)
    halves[:, 20:] = 255
    (tmp_path / "a").mkdir()
    for number in range(2):
        Image.fromarray(halves).save(tmp_path / "a" / f"{number}.png")
    train, _ = load_folder(tmp_path, 4, held_out=0.5)
    row = train.inputs[0, 0, 0].tolist()
    assert (row[0], row[3], sum(row)) == (0, 255, 510)


def test_all_broken_files_are_named_at_once(pets):
    for number in range(3):
        (pets / "cat" / f"{number}.png").write_bytes(b"words")
    (pets / "dog" / "0.png").write_bytes(b"")
    with pytest.raises(QuadspikeError) as caught:
        load_folder(pets, 8, held_out=0.2)
    message = str(caught.value)
    assert all(str(pets / "cat" / f"{number}.png") in message for number in range(3))
    assert "0.png: the file is empty" in message
    for number in range(10):
        (pets / "cat" / f"{number}.png").write_bytes(b"words")
    with pytest.raises(QuadspikeError, match="and 1 more"):
        load_folder(pets, 8, held_out=0.2)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda root: level(root / "train" / "eel" / "a.png", 1), "only .*train has 'eel'"),
        (lambda root: (root / "test" / "eel").mkdir(), "eel: the class has no images"),
        (lambda root: (root / "test" / "cat" / "c.png").mkdir(), "a folder where an image"),
        (lambda root: (root / "test" / "cat" / "a.doc").write_text("x"), "not named as an image"),
        (lambda root: level(root / "test" / "a.png", 1), "beside the class folders"),
        (lambda root: (root / "test").rename(root / "other"), "held_out=0.2"),
        (lambda root: (root / "train").rename(root / "other"), "train: cannot be listed"),
    ],
)
def test_folders_that_do_not_fit_are_refused(parted, spoil, message):
    spoil(parted)
    with pytest.raises(QuadspikeError, match=message):
        load_folder(parted, 8)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0, "held_out": 0.2}, "size must be"),
        ({"size": 8, "channels": 4, "held_out": 0.2}, "channels must be 3"),
        ({"size": 8, "held_out": 1.0}, "between 0 and 1, got 1.0"),
        ({"size": 8, "held_out": 0}, "between 0 and 1, got 0"),
        ({"size": 8, "held_out": "elsewhere"}, "train: cannot be listed"),
    ],
)
def test_bad_settings_are_refused(pets, options, message):
    with pytest.raises(QuadspikeError, match=message):
        load_folder(pets, **options)


def test_one_image_cannot_be_shared(pets):
    level(pets / "eel" / "0.png", 1)
    with pytest.raises(QuadspikeError, match="eel: one image cannot be shared"):
        load_folder(pets, 8, held_out=0.2)


@needs("imagenet-mini")
def test_real_images_load_into_memory():
    train, test = load_folder(MINI, 32)
    assert (len(train), len(test), train.count) == (72, 24, 6)
    assert 20 < float(train.inputs.float().std()) < 100
