from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from quadspike import QuadspikeError
from quadspike.data.crops import random_resized_crop_box
from quadspike.data.decode import BrokenImageError
from quadspike.data.imagenet import MEAN, STD, ImageNet
from quadspike.data.loader import Draw
from quadspike.data.streaming import StreamingLoader
from tests.real_data import SHARED, needs

MINI = SHARED / "imagenet-mini"
SYNSETS = ("n01440764", "n02102040", "n03000684")


def write_image(path: Path, seed: int, width=96, height=72) -> None:
    small = np.random.default_rng(seed).integers(0, 256, (3, 4, 3), dtype=np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC)
    image.save(path, "JPEG", quality=95)


@pytest.fixture
def root(tmp_path) -> Path:
    for place, synset in enumerate(SYNSETS):
        for number in range(4):
            write_image(
                tmp_path / "train" / synset / f"{synset}_{number}.JPEG", 10 * place + number
            )
        write_image(tmp_path / "val" / synset / f"ILSVRC2012_val_0000000{place}.JPEG", 100 + place)
    return tmp_path


def test_the_listing_is_sorted_and_numbers_the_sorted_synsets(root):
    data = ImageNet(root, "train")
    assert data.classes == SYNSETS
    assert data.labels.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert data.file(5) == root / "train" / SYNSETS[1] / f"{SYNSETS[1]}_1.JPEG"
    assert len(ImageNet(root, "val")) == 3


def test_names_that_are_not_ascii_and_hidden_files(root):
    write_image(root / "train" / SYNSETS[0] / "a é.JPEG", 0)
    (root / "train" / SYNSETS[0] / "._a.JPEG").write_bytes(b"dropping")
    (root / "train" / ".DS_Store").write_bytes(b"dropping")
    data = ImageNet(root, "train")
    assert len(data) == 13
    assert data.file(0).name == "a é.JPEG"
    assert data.load(0, [0.5, 0.5]).shape == (3, 224, 224)


def reference(path: Path, *, size, box) -> torch.Tensor:
    """The same view through Pillow alone."""
    with Image.open(path) as image:
        seen = image.convert("RGB").resize(size, Image.Resampling.BILINEAR).crop(box)
    return torch.from_numpy(np.array(seen)).permute(2, 0, 1).int()


def assert_close(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    assert (ours.int() - theirs).abs().max() <= 1


def test_the_paper_squashes_and_crops(root):
    data = ImageNet(root, "train")
    theirs = reference(data.file(0), size=(256, 256), box=(8, 16, 232, 240))
    assert_close(data.load(0, [8.5 / 33, 16.5 / 33]), theirs)
    data = ImageNet(root, "val")
    theirs = reference(data.file(0), size=(256, 256), box=(16, 16, 240, 240))
    assert_close(data.load(0, []), theirs)


def test_the_usual_crops_a_random_box_and_tests_in_the_middle(root):
    u = [0.2, 0.5, 0.0, 0.999] * 10
    data = ImageNet(root, "train", "usual")
    with Image.open(data.file(0)) as image:
        seen = image.crop(random_resized_crop_box(96, 72, u)).resize(
            (224, 224), Image.Resampling.BILINEAR
        )
    assert_close(data.load(0, u), torch.from_numpy(np.array(seen)).permute(2, 0, 1).int())
    data = ImageNet(root, "val", "usual")
    theirs = reference(data.file(0), size=(341, 256), box=(58, 16, 282, 240))
    assert_close(data.load(0, []), theirs)


@pytest.mark.parametrize("split", ["train", "val"])
@pytest.mark.parametrize("transform", ["paper", "usual"])
def test_a_large_photo_looks_the_same_with_and_without_a_draft(root, transform, split):
    write_image(root / split / SYNSETS[0] / "0.JPEG", 3, 2400, 1100)
    u = [0.35, 0.5, 0.9, 0.9] * 10
    drafted = ImageNet(root, split, transform).load(0, u).float()
    full = ImageNet(root, split, transform, draft=False).load(0, u).float()
    assert 0 < (drafted - full).abs().mean() < 1


@pytest.mark.parametrize(
    ("transform", "split", "holes"),
    [("paper", "train", True), ("usual", "train", False), ("paper", "val", False)],
)
def test_flip_hole_and_normalisation_happen_in_the_batch(root, transform, split, holes):
    data = ImageNet(root, split, transform, cutout=32)
    ramp = torch.arange(1, 225, dtype=torch.uint8).expand(64, 3, 224, 224)
    finished = data.finish(ramp, Draw(0, 0, torch.arange(64)))
    mean, std = (torch.tensor(value).view(3, 1, 1) for value in (MEAN, STD))
    levels = ((finished * std + mean) * 255).round()
    assert finished.dtype == torch.float32
    assert bool((levels == 0).any()) == holes
    rising = (levels.amax(dim=(1, 2)).diff(dim=1).sum(dim=1) > 0).sum()
    assert (rising == 64) if split == "val" else (16 < rising < 48)
    if holes:
        assert int((levels == 0)[:, 0].sum(dim=(1, 2)).max()) == 32 * 32


def test_a_data_set_can_be_sent_to_a_worker_that_was_not_forked(root):
    data = ImageNet(root, "train")
    sent = pickle.loads(pickle.dumps(data))
    assert torch.equal(sent.load(5, [0.1, 0.9]), data.load(5, [0.1, 0.9]))


def odd_class(root: Path) -> None:
    write_image(root / "val" / "n99999999" / "x.JPEG", 0)


def lacking_class(root: Path) -> None:
    shutil.rmtree(root / "val" / SYNSETS[1])


def empty_class(root: Path) -> None:
    (root / "val" / SYNSETS[1] / "ILSVRC2012_val_00000001.JPEG").unlink()


def foreign_file(root: Path) -> None:
    (root / "val" / SYNSETS[1] / "notes.txt").write_text("words")


def folder_named_as_image(root: Path) -> None:
    (root / "val" / SYNSETS[1] / "x.JPEG").mkdir()


def flat(root: Path) -> None:
    write_image(root / "val" / "ILSVRC2012_val_00000009.JPEG", 0)


def archive_beside_classes(root: Path) -> None:
    (root / "val" / "n01440764.tar").write_bytes(b"")


def nothing(root: Path) -> None:
    shutil.rmtree(root / "val")


def no_classes(root: Path) -> None:
    shutil.rmtree(root / "val")
    (root / "val").mkdir()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (odd_class, "only .*val has 'n99999999'"),
        (lacking_class, f"only .*train has '{SYNSETS[1]}'"),
        (empty_class, f"{SYNSETS[1]}: the class has no images"),
        (foreign_file, r"notes\.txt: not named as an image"),
        (folder_named_as_image, r"x\.JPEG: a folder where an image should be"),
        (flat, r"lie flat; sort them into val/<synset>/"),
        (archive_beside_classes, r"'n01440764\.tar'.*expected train/<synset>/\*\.JPEG"),
        (nothing, "cannot be listed: No such file"),
        (no_classes, "no class folders"),
    ],
)
def test_a_folder_that_is_not_imagenet_is_refused(root, spoil, message):
    spoil(root)
    with pytest.raises(QuadspikeError, match=message):
        ImageNet(root, "val")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"split": "test"}, "split of ImageNet 'test'"),
        ({"split": "val", "transform": "papper"}, "did you mean 'paper'"),
        ({"split": "val", "broken": "ignore"}, "fatal, skip"),
    ],
)
def test_unknown_names_are_refused(root, options, message):
    with pytest.raises(QuadspikeError, match=message):
        ImageNet(root, **options)


def test_validation_images_alone_number_their_own_classes(root):
    shutil.rmtree(root / "train")
    assert ImageNet(root, "val").classes == SYNSETS


def test_a_strip_is_refused_by_name(root):
    Image.new("RGB", (3000, 1)).save(root / "val" / SYNSETS[0] / "0.png")
    with pytest.raises(BrokenImageError, match=r"0\.png: a strip of 3000 x 1"):
        ImageNet(root, "val", "usual").load(0, [])


BROKEN = {
    "empty": b"",
    "words": b"these are words\n",
    "garbage": bytes(range(256)) * 20,
    "cut": None,
}


def break_two(root: Path, kind: str) -> list[str]:
    """The last image of the first class and the very last of all."""
    files = [root / "train" / synset / f"{synset}_3.JPEG" for synset in (SYNSETS[0], SYNSETS[2])]
    for file in files:
        content = BROKEN[kind]
        file.write_bytes(file.read_bytes()[:1500] if content is None else content)
    return [str(file) for file in files]


@pytest.mark.parametrize(("kind", "workers"), [*((kind, 0) for kind in BROKEN), ("cut", 2)])
def test_a_broken_file_is_named_in_this_process(root, kind, workers):
    first, _ = break_two(root, kind)
    loader = StreamingLoader(ImageNet(root, "train"), 2, workers)
    batches = loader.epoch()
    next(batches)
    with pytest.raises(QuadspikeError) as caught:
        next(batches)
    assert str(caught.value).startswith(f"{first}: ")
    assert "Traceback" not in str(caught.value)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_skipped_file_is_replaced_by_the_next_good_one_and_named(root, workers):
    broken = break_two(root, "cut")
    loader = StreamingLoader(ImageNet(root, "train", broken="skip"), 4, workers)
    labels = torch.cat([batch.labels for batch in loader.epoch()]).tolist()
    # Image 3 gave way to image 4 of the next class, image 11 to image 0.
    assert labels == [0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 0]
    assert list(loader.broken) == broken
    assert all("truncated" in reason for reason in loader.broken.values())


def test_when_every_file_is_broken_there_is_nothing_to_put_in_place(root):
    for file in (root / "train").glob("*/*.JPEG"):
        file.write_bytes(b"")
    loader = StreamingLoader(ImageNet(root, "train", broken="skip"), 4)
    with pytest.raises(QuadspikeError, match="every one of its images is broken"):
        next(loader.epoch())
    assert len(loader.broken) == 12


def test_a_file_that_vanished_is_an_error_even_when_broken_ones_are_skipped(root):
    data = ImageNet(root, "train", broken="skip")
    data.file(2).unlink()
    with pytest.raises(QuadspikeError, match="cannot be read"):
        next(StreamingLoader(data, 4).epoch())


@needs("imagenet-mini")
@pytest.mark.parametrize("transform", ["paper", "usual"])
def test_real_images_stream_the_same_through_workers(transform):
    data = ImageNet(MINI, "train", transform)
    assert (len(data), len(data.classes)) == (72, 6)
    here = list(StreamingLoader(data, 16, 0, seed=1, shuffle=True).epoch(3))
    there = list(StreamingLoader(data, 16, 2, seed=1, shuffle=True).epoch(3))
    assert [batch.inputs.shape for batch in here] == [(16, 3, 224, 224)] * 4
    for ours, theirs in zip(here, there, strict=True):
        assert torch.equal(ours.inputs, theirs.inputs)
        assert torch.equal(ours.labels, theirs.labels)


@needs("imagenet-mini")
def test_real_validation_images_are_all_there_and_normalised():
    batches = list(StreamingLoader(ImageNet(MINI, "val", "usual"), 9).epoch())
    labels = torch.cat([batch.labels for batch in batches])
    inputs = torch.cat([batch.inputs for batch in batches])
    assert labels.bincount().tolist() == [4] * 6
    assert abs(float(inputs.mean())) < 0.6
    assert 0.7 < float(inputs.std()) < 1.4
