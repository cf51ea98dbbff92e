from __future__ import annotations

from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from quadspike import QuadspikeError
from quadspike.data.augment import Cutout, Normalize
from quadspike.data.cifar.layouts import CIFAR10, CIFAR100
from quadspike.data.digits import load_digits
from quadspike.data.events.cifar10dvs import load_cifar10dvs
from quadspike.data.events.frames import Framing, to_bytes
from quadspike.data.events.transforms import dvs_train
from quadspike.data.geometry import Geometry
from quadspike.data.loader import Draw
from quadspike.data.split import Split
from quadspike.data.transforms import standard_transform
from quadspike.training import datasets
from quadspike.training.datasets import make_data
from quadspike.training.distributed import Workers
from quadspike.training.observer import Observer
from quadspike.training.plan import estimate
from quadspike.training.recipe import Recipe
from quadspike.training.sources import from_splits
from quadspike.training.start import train
from tests.cifar_files import Mini
from tests.event_files import recording, seed_of, write_all
from tests.real_data import SHARED, needs
from tests.test_imagenet import SYNSETS, write_image

CPU = torch.device("cpu")
MINI = SHARED / "imagenet-mini"


def recipe(dataset="digits", model="cnn", **fields) -> Recipe:
    return Recipe("test", dataset, model, **{"batch_size": 32, **fields})


def make(ask, root=None, workers=None):
    return make_data(ask, root, CPU, workers or Workers())


def labels_of(source, epoch=0):
    return torch.cat([batch.labels for batch in source.epoch(epoch)])


def images(count=24, classes=3, size=4, channels=2, **options) -> Split:
    generator = torch.Generator().manual_seed(count)
    shape = (count, channels, size, size)
    pixels = torch.randint(0, 200, shape, generator=generator, dtype=torch.uint8)
    names = tuple("abcdefgh"[:classes])
    return Split("mine", pixels, torch.arange(count) % classes, names, **options)


def clips(count=12, steps=3, levels=5) -> Split:
    pixels = torch.arange(count, dtype=torch.uint8).view(-1, 1, 1, 1, 1)
    pixels = pixels.expand(-1, steps, 2, 4, 4)
    return Split("clips", pixels, torch.arange(count) % 2, ("a", "b"), levels)


# -- the data sets ---------------------------------------------------------------------


def test_digits():
    data = make(recipe(validation=100))
    assert data.geometry == Geometry(1, 8, 10)
    assert data.classes == tuple("0123456789")
    assert (data.sizes.train, data.sizes.validation, data.sizes.test) == (1338, 100, 359)
    assert len(data.train) == 1338 // 32
    assert torch.equal(labels_of(data.test), load_digits()[1].labels)
    assert torch.bincount(labels_of(data.validation)).tolist() == [10] * 10
    batch = next(data.train.epoch())
    assert batch.inputs.shape == (32, 1, 8, 8)
    assert batch.inputs.dtype == torch.float32
    assert batch.inputs.is_contiguous(memory_format=torch.channels_last)


def test_the_test_and_held_out_images_are_shown_plainly_and_normalised():
    data = make(recipe(validation=100))
    train, test = load_digits()
    shown = torch.cat([batch.inputs for batch in data.test.epoch()])
    mean, std = train.inputs.double().mean(), train.inputs.double().std(correction=0)
    torch.testing.assert_close(shown.double(), (test.inputs - mean) / std, atol=1e-5, rtol=1e-5)
    for source in (data.test, data.validation):
        one, other = (torch.cat([b.inputs for b in source.epoch(e)]) for e in (0, 1))
        assert torch.equal(one, other)
    one, other = (torch.cat([b.inputs for b in data.train.epoch(e)]) for e in (0, 1))
    assert len(torch.cat([one, other]).unique(dim=0)) > len(train)  # shifted anew each epoch


PAIR = clips(), clips(6)


def test_event_digits_are_clips_with_a_frame_a_step(monkeypatch):
    asked = []
    monkeypatch.setattr(
        datasets, "load_event_digits", lambda *given, **how: asked.append((*given, how)) or PAIR
    )
    ask = recipe("digits-events", timesteps=3, batch_size=4)
    data = make(ask)
    make(ask.but(frames_by="count", frame_values="binary"))
    assert asked == [
        (3, {"by": "time", "values": "counts"}),
        (3, {"by": "count", "values": "binary"}),
    ]
    assert data.geometry == Geometry(2, 4, 2, static=False)
    assert next(data.train.epoch()).inputs.shape == (3, 4, 2, 4, 4)
    batches = [batch.inputs[0, :, 0, 0, 0] for batch in data.test.epoch()]
    assert torch.equal(torch.cat(batches), torch.arange(6) / 5)


@pytest.mark.slow
def test_simulated_event_digits():
    data = make(recipe("digits-events", timesteps=2))
    assert data.geometry == Geometry(2, 16, 10, static=False)
    assert data.sizes.test == 359


@pytest.mark.parametrize(("dataset", "layouts"), [("cifar10", CIFAR10), ("cifar100", CIFAR100)])
def test_cifar(tmp_path, monkeypatch, dataset, layouts):
    mini = Mini(layouts, per_class=1)
    monkeypatch.setattr(f"quadspike.data.cifar.load.{dataset.upper()}", mini.layouts)
    mini.unpack(tmp_path, "binary")
    ask = recipe(dataset, "resnet8", cutout=4, autoaugment=dataset == "cifar100", batch_size=10)
    data = make(ask, tmp_path)
    classes = 10 if dataset == "cifar10" else 100
    assert data.geometry == Geometry(3, 32, classes)
    assert data.sizes.test == classes
    assert next(data.train.epoch()).inputs.shape == (10, 3, 32, 32)
    augment, _ = data.train.transform.steps
    names = [type(step).__name__ for step in augment.steps]
    automatic = ["AutoAugment"] if dataset == "cifar100" else []
    assert names == ["RandomCrop", "RandomFlip", *automatic, "Cutout", "Normalize"]
    assert Cutout(4) in augment.steps
    plain = make(ask.but(cutout=0, autoaugment=False), tmp_path).train.transform.steps[0]
    assert [type(step).__name__ for step in plain.steps] == [
        "RandomCrop",
        "RandomFlip",
        "Normalize",
    ]


def test_recordings_become_frames_as_the_recipe_says(tmp_path, monkeypatch):
    root = write_all(tmp_path / "cifar10-dvs")
    monkeypatch.setattr(
        datasets, "load_cifar10dvs", partial(load_cifar10dvs, allow_partial=True, workers=1)
    )
    ask = recipe("cifar10-dvs", "vggsnn", timesteps=4, split="tebn", batch_size=8)
    kept = set()
    for fields, framing in (
        ({}, Framing(4, size=48)),
        ({"frames_by": "time"}, Framing(4, "time", size=48)),
        ({"frame_values": "binary", "frame_size": 32}, Framing(4, values="binary", size=32)),
        ({"frame_size": 128}, Framing(4)),
    ):
        data = make_data(ask.but(**fields), tmp_path, CPU, Workers())
        wanted, _ = to_bytes(framing(recording(seed_of("airplane", 0))), framing.levels)
        shown = next(data.test.epoch()).inputs[:, 0]
        assert torch.equal(shown, wanted / framing.levels)
        assert (data.sizes.train, data.sizes.test) == (40, 40)
        side = framing.size or 128
        assert data.geometry == Geometry(2, side, 10, static=False)
        files = set((root / "frames").glob("*.frames"))
        assert len(files - kept) == 1  # a cache of its own, that no other takes for its own
        kept = files
    for style in ("paper", "tet", "crop"):
        data = make_data(ask.but(event_transform=style), tmp_path, CPU, Workers())
        assert data.train.transform.steps[0] == dvs_train(style, levels=16)
    assert set((root / "frames").glob("*.frames")) == kept


@pytest.fixture
def photos(tmp_path):
    for place, synset in enumerate(SYNSETS):
        for number in range(6):
            write_image(
                tmp_path / "imagenet/train" / synset / f"{number}.JPEG", 10 * place + number
            )
        for number in range(2):
            write_image(
                tmp_path / "imagenet/val" / synset / f"{number}.JPEG", 50 + 3 * place + number
            )
    return tmp_path


@pytest.fixture
def in_this_process(monkeypatch):
    monkeypatch.setattr(datasets, "_decoding_processes", lambda: 0)


@pytest.mark.parametrize("transform", ["paper", "usual"])
def test_imagenet(photos, in_this_process, transform):
    ask = recipe("imagenet", "resnet34", batch_size=5, validation=3, image_transform=transform)
    data = make(ask.but(cutout=8 if transform == "paper" else 0), photos)
    assert data.geometry == Geometry(3, 224, 3)
    assert data.classes == SYNSETS
    assert (data.sizes.train, data.sizes.validation, data.sizes.test) == (15, 3, 6)
    assert labels_of(data.validation).tolist() == [0, 1, 2]
    assert labels_of(data.test).tolist() == [0, 0, 1, 1, 2, 2]
    assert torch.bincount(labels_of(data.train)).tolist() == [5, 5, 5]
    learned = {data.train.dataset.file(index) for index in range(15)}
    held = {data.validation.dataset.file(index) for index in range(3)}
    assert len(learned | held) == 18
    assert (Cutout(8) in data.train.dataset.pipeline.steps) == (transform == "paper")
    # Held-out photographs are shown as the test's are: the same whatever the epoch.
    (one,), (other,) = (list(data.validation.epoch(e)) for e in (0, 1))
    assert torch.equal(one.inputs, other.inputs)
    seen = [next(data.train.epoch(e)).inputs for e in (0, 1)]
    assert not torch.equal(*seen)


def test_a_run_on_some_classes_of_imagenet_notes_how_many(photos, in_this_process):
    class Look(Observer):
        def begin(self, what):
            assert what.notes == ("3 of the 1,000 classes of imagenet",)
            raise KeyboardInterrupt

    ask = recipe("imagenet", "cnn", batch_size=5, timesteps=1)
    with pytest.raises(KeyboardInterrupt):
        train(ask, out=photos / "run", device="cpu", data_root=photos, observers=[Look()])


@needs("imagenet-mini")
def test_real_photographs(tmp_path, in_this_process):
    (tmp_path / "imagenet").symlink_to(MINI)
    data = make(recipe("imagenet", "resnet34", batch_size=4), tmp_path)
    batch = next(data.train.epoch())
    assert batch.inputs.shape == (4, 3, 224, 224)
    assert batch.inputs.isfinite().all()


# -- several workers -------------------------------------------------------------------


def shares(ask, world, root=None):
    return [make(ask, root, Workers(rank, world, rank)) for rank in range(world)]


@pytest.mark.parametrize("world", [2, 3, 4])
def test_workers_share_batches_and_every_test_sample(world):
    ask = recipe(batch_size=24, validation=50)
    alone, ranks = make(ask), shares(ask, world)
    for whole, *parts in zip(
        alone.train.epoch(3), *(data.train.epoch(3) for data in ranks), strict=True
    ):
        assert torch.equal(torch.cat([part.inputs for part in parts]), whole.inputs)
    for name in ("test", "validation"):
        together = torch.cat([labels_of(getattr(data, name)) for data in ranks])
        assert torch.equal(together, labels_of(getattr(alone, name)))
    assert all(data.sizes == alone.sizes for data in ranks)


def test_workers_share_photographs(photos, in_this_process):
    ask = recipe("imagenet", "resnet34", batch_size=6)
    alone, ranks = make(ask, photos), shares(ask, 2, photos)
    for whole, *parts in zip(
        alone.train.epoch(1), *(data.train.epoch(1) for data in ranks), strict=True
    ):
        assert torch.equal(torch.cat([part.inputs for part in parts]), whole.inputs)
    together = torch.cat([labels_of(data.test) for data in ranks])
    assert together.sort().values.tolist() == [0, 0, 1, 1, 2, 2]


def test_decoding_processes_are_shared_by_the_workers_of_a_machine(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: range(12), raising=False)
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    assert datasets._decoding_processes() == 12
    for world, expected in (("4", 3), ("8", 1), ("64", 1)):
        monkeypatch.setenv("LOCAL_WORLD_SIZE", world)
        assert datasets._decoding_processes() == expected


# -- the user's own data ---------------------------------------------------------------


def test_own_images_are_normalised_by_themselves():
    train = images()
    data = from_splits(recipe("own", batch_size=8), train, images(9), CPU, Workers())
    assert data.geometry == Geometry(2, 4, 3)
    shown = torch.cat([batch.inputs for batch in data.train.epoch()])
    torch.testing.assert_close(shown.mean((0, 2, 3)), torch.zeros(2), atol=1e-6, rtol=0)
    torch.testing.assert_close(shown.std((0, 2, 3), correction=0), torch.ones(2))
    assert shown.is_contiguous(memory_format=torch.channels_last)


def test_a_channel_without_contrast_becomes_zero():
    split = Split(
        "flat", torch.full((4, 1, 2, 2), 7, dtype=torch.uint8), torch.zeros(4).long(), ("a",)
    )
    shown = standard_transform(split)(split.inputs, Draw(0, 0, torch.arange(4)))
    torch.testing.assert_close(shown, torch.zeros(4, 1, 2, 2), atol=1e-6, rtol=0)


def test_own_clips_are_counted_in_events():
    data = from_splits(recipe("own", timesteps=3, batch_size=4), clips(), clips(6), CPU, Workers())
    assert not data.geometry.static
    (batch, _) = data.test.epoch()
    assert batch.inputs.shape == (3, 4, 2, 4, 4)
    assert torch.equal(batch.inputs[2, :, 1, 3, 3], torch.arange(4) / 5)


@pytest.mark.parametrize(
    ("precision", "dtype"),
    [("fp32", torch.float32), ("bf16", torch.float32), ("fp64", torch.float64)],
)
def test_inputs_come_in_the_recipe_s_type(photos, in_this_process, precision, dtype):
    ask = recipe("own", batch_size=4, precision=precision, validation=4)
    data = from_splits(ask, images(), images(), CPU, Workers())
    for source in (data.train, data.test, data.validation):
        assert next(source.epoch()).inputs.dtype == dtype
    stream = make(recipe("imagenet", "resnet34", batch_size=2, precision=precision), photos)
    batch = next(stream.test.epoch())
    assert batch.inputs.dtype == dtype
    assert batch.inputs.is_contiguous(memory_format=torch.channels_last)


def test_own_transforms_are_used_where_they_belong():
    def one(x, draw):
        return torch.ones(x.shape)

    ask = recipe("own", batch_size=4, validation=6)
    both = from_splits(ask, images(), images(), CPU, Workers(), plain=one)
    assert next(both.train.epoch()).inputs.unique() == 1
    data = from_splits(ask, images(), images(), CPU, Workers(), augment=one)
    assert next(data.train.epoch()).inputs.unique() == 1
    assert len(next(data.validation.epoch()).inputs.unique()) > 1
    assert isinstance(data.test.transform.steps[0], Normalize)


@settings(max_examples=20, deadline=None)
@given(count=st.integers(0, 20), seed=st.integers(0, 2**63 - 1))
def test_the_held_out_samples_do_not_depend_on_the_seed(count, seed):
    ask = recipe("own", batch_size=1, validation=count)
    plain, other = (
        from_splits(ask.but(seed=s), images(), images(), CPU, Workers()) for s in (0, seed)
    )
    assert plain.sizes.train + count == 24
    if count:
        assert torch.equal(plain.validation.split.inputs, other.validation.split.inputs)


# -- refusals --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dataset", "options", "message"),
    [
        ("cifar10", {}, "no CIFAR-10 under .*nowhere"),
        ("cifar100", {}, "no CIFAR-100 under .*nowhere"),
        ("imagenet", {}, "nowhere/imagenet/train: cannot be listed.*<synset>"),
        ("cifar10-dvs", {"split": "tebn"}, "nowhere/cifar10-dvs: no such folder"),
        ("own", {}, r"needs its data.*data=\(training, test\).*from_splits"),
    ],
)
def test_data_that_are_not_there(tmp_path, dataset, options, message):
    with pytest.raises(QuadspikeError, match=message):
        make(recipe(dataset, **options), tmp_path / "nowhere")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("change", "train", "test", "workers", "message"),
    [
        ({"validation": 24}, images(), images(), Workers(), "validation=24 .* 24 samples of mine"),
        ({"validation": 20}, images(), images(), Workers(), "larger than the 4 samples"),
        ({}, images(), images(), Workers(0, 3), "batch of 8 .* 3 workers"),
        ({"accumulate": 8}, images(), images(), Workers(0, 2), "4 samples .* accumulate=8"),
        ({}, images(), images(size=5), Workers(), r"\(2, 4, 4\).*\(2, 5, 5\)"),
        ({}, images(), images(levels=9), Workers(), "levels of 255.* 9"),
        ({}, images(), images(classes=2), Workers(), "same classes"),
        ({}, clips(), clips(), Workers(), "clips of 3 frames, but timesteps=2"),
        (
            {},
            *[Split("wide", torch.zeros(9, 1, 2, 3).byte(), torch.zeros(9).long(), ("a",))] * 2,
            Workers(),
            "square",
        ),
    ],
)
def test_bad_input_is_refused(change, train, test, workers, message):
    with pytest.raises(QuadspikeError, match=message):
        from_splits(recipe("own", **{"batch_size": 8, **change}), train, test, CPU, workers)


@pytest.mark.parametrize("dataset", ["digits", "imagenet"])
def test_a_batch_that_workers_cannot_share_is_refused_before_anything_is_read(dataset, tmp_path):
    with pytest.raises(QuadspikeError, match=r"batch of 32 .* 5 workers"):
        make(recipe(dataset), tmp_path, Workers(0, 5))


def test_a_plan_is_of_the_recipe_s_frames():
    ask = recipe("cifar10-dvs", "vggsnn", split="tebn", timesteps=1, batch_size=1, epochs=1)
    small, large = (estimate(ask.but(frame_size=size), CPU, Workers()) for size in (16, 32))
    assert large.memory_gib > small.memory_gib
    assert large.parameters > small.parameters  # the classifier sees more places
