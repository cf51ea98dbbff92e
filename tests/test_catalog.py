from __future__ import annotations

import shutil
import struct

import pytest
import torch
from PIL import Image

from quadspike import QuadspikeError
from quadspike.analysis.sheet import contact_sheet
from quadspike.data import catalog
from quadspike.data.augment import Pipeline, RandomFlip
from quadspike.data.catalog import CATALOG, preview, verify
from quadspike.data.events.aedat import write_aedat
from quadspike.data.events.camera import EventCamera
from quadspike.data.events.cifar10dvs import CLASSES
from quadspike.data.events.form import Events
from quadspike.data.events.frames import Framing
from quadspike.data.events.look import few_clips
from quadspike.data.simulate import simulate
from quadspike.data.split import Split
from quadspike.training import datasets
from quadspike.training.datasets import make_data
from quadspike.training.distributed import Workers
from quadspike.training.recipe import Recipe
from tests.conftest import run_cli
from tests.real_data import SHARED, needs


@pytest.fixture(autouse=True)
def wide(monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("QUADSPIKE_DATA", str(tmp_path / "data"))


def toy(clips=False):
    shape = (6, 3, 2, 8, 8) if clips else (6, 3, 8, 8)
    inputs = torch.randint(0, 255, shape, dtype=torch.uint8)
    return Split("toy/train", inputs, torch.arange(6) % 2, ("cat", "dog"), 16 if clips else 0)


def test_the_embedded_sets_are_whole_and_nothing_else_is_there():
    for name in CATALOG:
        result = verify(name)
        assert result.whole == name.startswith("digits"), name
        assert result.whole or result.problem


def test_an_unknown_name_is_refused():
    with pytest.raises(QuadspikeError, match="did you mean 'cifar10'"):
        verify("cifar1")


@pytest.mark.parametrize("clips", [False, True])
def test_a_contact_sheet_shows_samples_before_and_after(clips):
    figure = contact_sheet(toy(clips), Pipeline((RandomFlip(),)), count=4, epochs=2)
    assert len(figure.axes) == (8 if clips else 12)


def test_the_pictures_of_a_sheet_are_the_samples():
    split = toy()
    figure = contact_sheet(split, Pipeline(()), count=6)
    for place, axis in enumerate(figure.axes):
        shown = torch.tensor(axis.images[0].get_array()).permute(2, 0, 1) * 255
        torch.testing.assert_close(shown.float(), split.inputs[place].float())
        assert axis.get_title() == split.classes[int(split.labels[place])]


@pytest.mark.parametrize("name", ["digits", "digits-events"])
def test_the_sheet_shows_the_augmentation_of_training(monkeypatch, name):
    few = Split(name, torch.ones(4, 8, 2, 8, 8).byte(), torch.arange(4) % 2, ("a", "b"), 1)
    monkeypatch.setattr(catalog, "load_event_digits", lambda **how: (few, few))
    monkeypatch.setattr(datasets, "load_event_digits", lambda *given, **how: (few, few))
    recipe = Recipe("test", name, "cnn", timesteps=8, batch_size=4)
    trained = make_data(recipe, None, torch.device("cpu"), Workers()).train.transform.steps[0]
    assert preview(name)[1] == trained


def test_the_sheet_of_digits_shows_them_shifted():
    pictures = [axis.images[0].get_array() for axis in contact_sheet(*preview("digits")).axes]
    assert len(pictures) == 4 * 8
    assert (pictures[0] != pictures[8]).any()


def test_on_is_red_off_is_blue_and_nothing_is_white():
    clip = torch.zeros(1, 1, 2, 2, 2, dtype=torch.uint8)
    clip[0, 0, 1, 0, 0] = 9  # ON
    clip[0, 0, 0, 1, 1] = 9  # OFF
    split = Split("toy", clip, torch.zeros(1).long(), ("a",), 1)
    picture = contact_sheet(split, Pipeline(()), count=1).axes[0].images[0].get_array()
    assert picture[0, 0].tolist() == [1, 0, 0]
    assert picture[1, 1].tolist() == [0, 0, 1]
    assert picture[0, 1].tolist() == [1, 1, 1]


# -- through the command line -----------------------------------------------------------


def test_list_and_verify(capsys, tmp_path):
    assert run_cli("data", "list") == 0
    out = capsys.readouterr().out
    assert all(name in out for name in CATALOG)
    (tmp_path / "data" / "imagenet").mkdir(parents=True)
    assert run_cli("data", "verify") == 0
    assert run_cli("data", "verify", "digits") == 0
    assert run_cli("data", "verify", "digits", "cifar10") == 1
    assert "cifar-10" in capsys.readouterr().out
    damaged = tmp_path / "data" / "nmnist" / "Train" / "0"
    damaged.mkdir(parents=True)
    (damaged / "1.bin").write_bytes(b"abc")
    assert run_cli("data", "verify", "nmnist") == 1


@pytest.mark.parametrize(
    "begun",
    [
        "cifar-10-batches-bin/data_batch_1.bin",
        "imagenet/train/n01440764/1.JPEG",
        "cifar10-dvs/cat/cifar10_cat_0.aedat",
        "nmnist/Train/0/1.bin",
    ],
)
def test_what_is_there_in_part_is_not_nothing(capsys, tmp_path, begun):
    path = tmp_path / "data" / begun
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")
    assert run_cli("data", "verify") == 1
    assert f"no     some of the files in {tmp_path / 'data'}" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["digits", "digits-events"])
def test_show_the_embedded_sets(capsys, tmp_path, name):
    out = tmp_path / "new" / "x.PNG"
    assert run_cli("data", "show", name, str(out), "--count", "3") == 0
    assert Image.open(out).size[0] > 300


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["data", "shw"], "did you mean 'show'"),
        (["data", "show", "digit", "x.png"], "did you mean 'digits'"),
        (["data", "show", "digits", "x.png", "--count", "0"], "count"),
        (["data", "show", "digits", "x.bmp"], "figure format"),
        (["data", "show", "imagenet", "x.png"], "imagenet"),
        (["data", "simulate", "imagenet", "out"], "image data set"),
        (["data", "simulate", "cifar10", "out"], "cifar-10"),
        (["data", "simulate", "digits", "out", "--device", "cudaa"], "no device 'cudaa'"),
        (["data", "simulate", "digits", "out", "--real", "nowhere.aedat"], "nowhere.aedat"),
        (["data", "show", "digits", "x.png", "--count", "41"], "at most 40"),
        (["data", "download", "imagenet"], "data set to download"),
        (["data", "verify", "digits", "nope"], "unknown data set 'nope'"),
        (["figures", "out", "--resting", "0", "4.5", "--u1", "0.4"], "leave --u1 and --u2 out"),
    ],
)
def test_mistakes_end_with_one_line(mistaken, arguments, message):
    assert message in mistaken(*arguments)


def test_simulated_beside_any_real_recordings(capsys, tmp_path):
    """Two of one name, one of a single event, and one whose clock fell."""
    out = tmp_path / "recordings"
    one = tmp_path / "a" / "one.aedat"
    write_aedat(Events.of([7], [0], [0], [1], width=128, height=128), one)
    fell = tmp_path / "b" / "one.aedat"
    fell.parent.mkdir()
    records = struct.pack(">IIIIII", 0, 9, 0, 5, 0, 6)
    fell.write_bytes(b"#!AER-DAT2.0\r\n" + records)
    command = ["data", "simulate", "digits", str(out), "--per-class", "1", "--real"]
    assert run_cli(*command, str(one), str(fell)) == 0
    assert [path.name for path in sorted(out.glob("*/*"))] == [
        f"digits_{n}_0.aedat" for n in range(10)
    ]
    rows = [line.split("│") for line in capsys.readouterr().out.splitlines() if "│" in line]
    found = {row[1].strip(): [cell.strip() for cell in row[-3:-1]] for row in rows}
    assert found["events"] == ["1", "3"]
    assert found["interval, sd / mean"] == ["nan", "0.50"]


def test_few_recordings_are_spread_over_all():
    event = Events.of([1], [0], [0], [1], width=4, height=4)
    recordings = [(number, number // 2) for number in range(19)]
    asked = ("toy", recordings, 10, lambda source: event, Framing(1), tuple("abcdefghij"))
    assert few_clips(*asked).labels.tolist() == [0, 0, 1, 2, 3, 4, 5, 6, 7, 8]
    assert len(few_clips("toy", recordings[:3], *asked[2:])) == 3


def test_show_whatever_recordings_are_there(tmp_path):
    still = torch.randint(0, 255, (10, 3, 32, 32), dtype=torch.uint8)
    source = Split("cifar10/train", still, torch.arange(10), CLASSES)
    camera = EventCamera(loops=1, refresh_hz=30.0, substeps=1)
    simulate(source, tmp_path / "data" / "cifar10-dvs", camera, per_class=1)
    assert run_cli("data", "show", "cifar10-dvs", str(tmp_path / "x.png"), "--count", "3") == 0
    split, _ = preview("cifar10-dvs", count=3)
    assert split.inputs.shape == (3, 10, 2, 48, 48)
    assert split.name == "cifar10-dvs (simulated), 10 recordings"
    assert not (tmp_path / "data" / "cifar10-dvs" / "frames").exists()


def test_show_n_mnist(tmp_path):
    for digit in range(10):
        folder = tmp_path / "data" / "nmnist" / "Train" / str(digit)
        folder.mkdir(parents=True)
        event = bytes([digit, 3, 0x80, 0, 9])
        (folder / "00001.bin").write_bytes(event * 20)
    split, _ = preview("nmnist", count=10)
    assert split.labels.tolist() == list(range(10))
    assert split.inputs[4, :, 1].sum() == 20
    assert split.inputs[4, :, 1, 3, 4].sum() == 20


# -- real files --------------------------------------------------------------------------


@needs("imagenet-mini")
def test_show_and_verify_the_mini_imagenet(capsys, tmp_path):
    root = tmp_path / "data"
    root.mkdir()
    (root / "imagenet").symlink_to(SHARED / "imagenet-mini")
    found = verify("imagenet")
    assert found.whole
    assert found.found.startswith("96 images of 6 of 1,000 classes in ")
    split, augmentation = preview("imagenet", count=4)
    assert split.inputs.shape == (4, 3, 224, 224)
    assert len(augmentation.steps) == 3
    assert run_cli("data", "show", "imagenet", str(tmp_path / "x.png"), "--count", "4") == 0


@needs("imagenet-mini")
def test_a_broken_imagenet_file_is_named(tmp_path):
    root = tmp_path / "data" / "imagenet"
    shutil.copytree(SHARED / "imagenet-mini", root)
    root.chmod(0o755)
    victim = sorted(root.glob("val/*/*.JPEG"))[3]
    victim.parent.chmod(0o755)
    victim.chmod(0o644)
    victim.write_bytes(victim.read_bytes()[: victim.stat().st_size // 2])
    result = verify("imagenet")
    assert not result.whole
    assert victim.name in result.problem
    assert "1 broken" in result.problem
