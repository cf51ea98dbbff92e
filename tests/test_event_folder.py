from __future__ import annotations

import errno
import os
from functools import partial

import pytest
import torch

from quadspike import QuadspikeError
from quadspike.data.events.aedat import write_aedat
from quadspike.data.events.folder import load_event_folder
from quadspike.data.events.frames import Framing, to_bytes, to_frames
from quadspike.data.events.nmnist import load_nmnist, parse_nmnist
from tests.event_files import load, recording, write_class
from tests.test_nmnist import official, record


@pytest.fixture
def own(tmp_path):
    for label, name in enumerate(["wave", "clap"]):
        for number in range(1, 13):
            target = tmp_path / "own" / name / f"take{number}.aedat"
            write_aedat(recording(100 * label + number), target)
    return tmp_path / "own"


def test_a_folder_of_ones_own(own):
    train, test = load_event_folder(own, 4, split="last", test_share=0.25)
    assert train.classes == ("clap", "wave")
    assert (len(train), len(test)) == (18, 6)
    assert torch.equal(test.inputs[0].int(), Framing(4)(recording(110)))
    assert torch.equal(test.inputs[5].int(), Framing(4)(recording(12)))
    drawn = [load_event_folder(own, 4, split="random", seed=seed)[1] for seed in (1, 1, 2)]
    assert torch.equal(drawn[0].inputs, drawn[1].inputs)
    assert not torch.equal(drawn[0].inputs, drawn[2].inputs)
    assert sorted(path.name for path in own.iterdir()) == ["clap", "wave"]


def test_a_folder_with_its_own_parts_and_both_formats(tmp_path):
    for part in ("train", "test"):
        write_aedat(recording(1), tmp_path / "set" / part / "camera" / "a.aedat")
        (tmp_path / "set" / part / "digit").mkdir()
        (tmp_path / "set" / part / "digit" / "b.bin").write_bytes(bytes([1, 2, 128, 0, 9]))
    with pytest.raises(QuadspikeError, match=r"b\.bin: its frames are .*pass size"):
        load_event_folder(tmp_path / "set", 2, split="folders")
    train, test = load_event_folder(tmp_path / "set", 2, split="folders", size=16)
    assert train.labels.tolist() == test.labels.tolist() == [0, 1]
    framing = Framing(2, size=16)
    digit = framing(parse_nmnist(bytes([1, 2, 128, 0, 9]), ""))
    assert torch.equal(train.inputs[1], to_bytes(digit, framing.levels)[0])
    write_aedat(recording(1), tmp_path / "set" / "train" / "solo" / "a.aedat")
    with pytest.raises(QuadspikeError, match=r"only .*train has 'solo' \(1 such\)"):
        load_event_folder(tmp_path / "set", 2, split="folders", size=16)


def test_names_of_any_bytes_serve(tmp_path):
    root = tmp_path / os.fsdecode(b"g\xe9ste")
    for number in range(2):
        write_aedat(recording(number), root / os.fsdecode(b"\xff") / f"{number}.aedat")
        write_aedat(recording(number), root / "b" / f"{number}.aedat")
    train, test = load_event_folder(root, 4, split="last")
    assert train.labels.tolist() == test.labels.tolist() == [0, 1]
    assert torch.equal(test.inputs[0].int(), Framing(4)(recording(1)))


def test_hidden_files_are_passed_over(own):
    before = load_event_folder(own, 4, split="last")
    (own / "wave" / "._take1.aedat").write_bytes(b"\0\5\x16\7")
    (own / "._wave").mkdir()
    after = load_event_folder(own, 4, split="last")
    assert torch.equal(after[0].inputs, before[0].inputs)


@pytest.mark.parametrize("layout", ["own", "nmnist", "cifar10-dvs"])
def test_a_class_without_rights_is_not_an_empty_one(tmp_path, monkeypatch, layout):
    if layout == "nmnist":
        closed, call = official(tmp_path) / "Train" / "3", lambda: load_nmnist(tmp_path, 4)
    elif layout == "own":
        for number in range(4):
            write_aedat(recording(0), tmp_path / "set" / "ab"[number % 2] / f"{number}.aedat")
        closed = tmp_path / "set" / "b"
        call = lambda: load_event_folder(tmp_path / "set", 4, split="last")  # noqa: E731
    else:
        write_class(tmp_path, "cat", (0, 950))
        write_class(tmp_path, "dog", (0, 950))
        closed, call = tmp_path / "dog", lambda: load(tmp_path)
    call()

    def without_rights(given, path):  # chmod does not keep root out
        if path == closed:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return given(path)

    for name in ("listdir", "scandir"):
        monkeypatch.setattr(os, name, partial(without_rights, getattr(os, name)))
    with pytest.raises(QuadspikeError, match=rf"{closed.name}: cannot be listed: Permission"):
        call()


def test_times_that_fall_are_refused_or_treated_as_asked(tmp_path):
    late = record(1, 0, 1, 5) + record(2, 0, 1, 4)
    for number in range(2):
        path = tmp_path / "set" / "a" / f"{number}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(late)
    with pytest.raises(QuadspikeError, match='pass backwards="sort"'):
        load_event_folder(tmp_path / "set", 2, split="last")
    train, _ = load_event_folder(tmp_path / "set", 2, split="last", backwards="sort")
    assert torch.equal(train.inputs[0], to_frames(parse_nmnist(late, "", backwards="sort"), 2))
    with pytest.raises(QuadspikeError, match=r"'unwrap'.*one of: error, sort"):
        load_event_folder(tmp_path / "set", 2, split="last", backwards="unwrap")


def test_a_folder_that_does_not_fit_is_named(own, tmp_path):
    with pytest.raises(QuadspikeError, match="'folders': root/train/<class>"):
        load_event_folder(own, 4)
    with pytest.raises(QuadspikeError, match="own/train: no such folder"):
        load_event_folder(own, 4, split="folders")
    with pytest.raises(QuadspikeError, match="test_share"):
        load_event_folder(own, 4, split="last", test_share=1)
    (own / "empty").mkdir()
    with pytest.raises(QuadspikeError, match=r"empty: no event files \(\.aedat or \.bin\)"):
        load_event_folder(own, 4, split="last")
    (own / "empty").rmdir()
    write_aedat(recording(0), own / "solo" / "a.aedat")
    with pytest.raises(QuadspikeError, match="class solo has 1 recordings, too few"):
        load_event_folder(own, 4, split="last")
    assert not list(tmp_path.glob("*.frames"))
    with pytest.raises(QuadspikeError, match="no class folders"):
        load_event_folder(own / "solo", 4, split="last")
