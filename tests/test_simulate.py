from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import quadspike
from quadspike.data.events.aedat import read_aedat
from quadspike.data.events.camera import EventCamera
from quadspike.data.events.camera_keys import separate
from quadspike.data.events.cifar10dvs import CLASSES, load_cifar10dvs
from quadspike.data.events.files import SIMULATED
from quadspike.data.simulate import simulate, simulate_frames
from quadspike.data.split import Split
from quadspike.errors import QuadspikeError, QuadspikeWarning

QUICK = EventCamera(loops=1, response_ms=0.0, threshold=1.0, noise_hz=0.5)


def split(per_class=3, classes=CLASSES, name="cifar10/train"):
    source = torch.Generator().manual_seed(0)
    labels = torch.arange(per_class * len(classes)) % len(classes)
    shape = (len(labels), 3, 8, 8)
    images = torch.randint(0, 256, shape, dtype=torch.uint8, generator=source)
    return Split(name, images, labels, classes)


def files(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_files_lie_as_in_cifar10_dvs_and_read_back_the_same(tmp_path):
    out = tmp_path / "events"
    calls = []
    made = simulate(
        split(), out, QUICK, 7, per_class=2, batch=6, progress=lambda *both: calls.append(both)
    )
    assert made == 20
    assert calls == [(done, 20) for done in range(1, 21)]
    expected = {f"{name}/cifar10_{name}_{i}.aedat" for name in CLASSES for i in range(2)}
    assert files(out).keys() == expected | {SIMULATED}
    samples = torch.arange(20)
    for sample, events in enumerate(separate(QUICK.record(split().inputs[:20], samples, 7))):
        path = out / CLASSES[sample % 10] / f"cifar10_{CLASSES[sample % 10]}_{sample // 10}.aedat"
        found = read_aedat(path)
        for name in "txyp":
            assert torch.equal(getattr(found, name), getattr(events, name))


def test_what_is_simulated_says_so(tmp_path):
    simulate(split(), tmp_path / "events", QUICK, 7, per_class=1)
    label = json.loads((tmp_path / "events" / SIMULATED).read_text())
    assert "no sensor recorded this" in label["simulated"]
    assert label["camera"] == {**vars(QUICK), "radius": [16.0, 20.0]}
    assert (label["seed"], label["source"]) == (7, "cifar10/train")
    assert label["quadspike"] == quadspike.__version__
    data = (tmp_path / "events" / "cat" / "cifar10_cat_0.aedat").read_bytes()
    assert b"\r\n# simulated by quadspike" in data
    assert simulate_frames(split(1), 2, QUICK).name == "cifar10/train (simulated)"


@pytest.mark.parametrize(("size", "values"), [(48, "counts"), (None, "binary")])
def test_frames_are_those_that_the_loader_makes_of_the_files(tmp_path, size, values):
    out = tmp_path / "events"
    simulate(split(2), out, QUICK, 7, per_class=2)
    loaded = load_cifar10dvs(out, 4, size, "random", values=values, allow_partial=True)
    assert loaded[0].name == "cifar10-dvs (simulated)/random/train"
    clips = simulate_frames(split(2), 4, QUICK, 7, size=size, values=values, batch=7)
    assert clips.levels == loaded[0].levels
    for label in range(10):
        found = {
            clip.numpy().tobytes() for part in loaded for clip in part.inputs[part.labels == label]
        }
        assert found == {clip.numpy().tobytes() for clip in clips.inputs[clips.labels == label]}


def test_neither_batch_nor_interruption_shows(tmp_path):
    whole, pieces = tmp_path / "whole", tmp_path / "pieces"
    simulate(split(), whole, QUICK, per_class=3, batch=30)
    with pytest.raises(KeyboardInterrupt):
        simulate(split(), pieces, QUICK, per_class=3, batch=4, progress=_stop_at(9))
    (pieces / "truck").mkdir(exist_ok=True)
    (pieces / "truck" / ".cifar10_truck_2.aedat.partial").write_bytes(b"half")
    kept = {path: path.stat().st_mtime_ns for path in pieces.glob("*/*.aedat")}
    assert 9 <= len(kept) < 30
    assert simulate(split(), pieces, QUICK, per_class=3, batch=7) == 30 - len(kept)
    assert all(path.stat().st_mtime_ns == time for path, time in kept.items())
    assert files(pieces) == files(whole)
    assert simulate(split(), pieces, QUICK, per_class=3) == 0


def _stop_at(number):
    def progress(done, total):
        if done == number:
            raise KeyboardInterrupt

    return progress


KILLED = """
import sys
sys.path.insert(0, {root!r})
from tests.test_simulate import QUICK, simulate, split
simulate(split(), {out!r}, QUICK, per_class=3, batch=4,
         progress=lambda done, total: print(done, flush=True))
"""


def test_a_killed_run_goes_on_and_ends_the_same(tmp_path):
    out, whole = tmp_path / "killed", tmp_path / "whole"
    root = str(Path(__file__).parents[1])
    code = KILLED.format(root=root, out=str(out))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as run:
        for line in run.stdout:
            if int(line) >= 6:
                with pytest.raises(QuadspikeError, match="another process"):
                    simulate(split(), out, QUICK, per_class=3)
                os.kill(run.pid, signal.SIGKILL)
                break
    recorded = list(out.glob("*/*.aedat"))
    assert 6 <= len(recorded) < 30
    for path in recorded:
        read_aedat(path)
    assert simulate(split(), out, QUICK, per_class=3) == 30 - len(recorded)
    simulate(split(), whole, QUICK, per_class=3)
    assert files(out) == files(whole)


def test_a_label_left_half_written_is_no_obstacle(tmp_path):
    (tmp_path / f".{SIMULATED}.partial").write_bytes(b"{")
    simulate(split(1), tmp_path, QUICK, per_class=1)
    assert not list(tmp_path.rglob("*.partial"))


def test_a_folder_of_other_recordings_is_refused(tmp_path):
    other = tmp_path / "real"
    (other / "cat").mkdir(parents=True)
    (other / "cat" / "cifar10_cat_0.aedat").write_bytes(b"real")
    before = files(other)
    with pytest.raises(QuadspikeError, match="not empty"):
        simulate(split(), other, QUICK, per_class=1)
    assert files(other) == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 1}, "another seed: 0 instead of 1"),
        ({"camera": replace(QUICK, threshold=0.9)}, "another camera"),
        ({"per_class": 2}, "another per_class"),
        ({"split": split(3, CLASSES, "cifar10/test")}, "another source"),
        ({"split": replace(split(), inputs=255 - split().inputs)}, "another source_sha256"),
    ],
)
def test_a_folder_of_another_simulation_is_refused(tmp_path, change, message):
    asked = {"split": split(), "camera": QUICK, "seed": 0, "per_class": 1}
    simulate(out=tmp_path / "events", **asked)
    before = files(tmp_path / "events")
    with pytest.raises(QuadspikeError, match=message):
        simulate(out=tmp_path / "events", **{**asked, **change})
    assert files(tmp_path / "events") == before


def test_a_foreign_recording_or_a_broken_label_is_refused(tmp_path):
    simulate(split(), tmp_path, QUICK, per_class=1)
    foreign = tmp_path / "cat" / "mine.aedat"
    foreign.write_bytes(b"mine")
    with pytest.raises(QuadspikeError, match=r"mine\.aedat"):
        simulate(split(), tmp_path, QUICK, per_class=1)
    foreign.unlink()
    for broken in ("{", "[]"):
        (tmp_path / SIMULATED).write_text(broken)
        with pytest.raises(QuadspikeError, match="JSON"):
            simulate(split(), tmp_path, QUICK, per_class=1)


def test_what_cannot_be_recorded_is_refused_before_anything_is_written(tmp_path):
    out = tmp_path / "events"
    with pytest.raises(QuadspikeError, match="simulate_frames"):
        simulate(split(), out, replace(QUICK, sensor=64))
    with pytest.raises(QuadspikeError, match="3 images of airplane, fewer than 1000"):
        simulate(split(), out, QUICK)
    for name in ("a/b", "..", ""):
        with pytest.raises(QuadspikeError, match=f"the class '{name}'"):
            simulate(split(1, (name, "c")), out, QUICK, per_class=1)
    with pytest.raises(QuadspikeError, match="batch"):
        simulate(split(), out, QUICK, per_class=1, batch=0)
    assert not out.exists()


def test_pixels_that_a_byte_cannot_hold_are_told(tmp_path):
    loud = replace(QUICK, sensor=8, screen=32, threshold=0.005, refractory_us=0)
    with pytest.warns(QuadspikeWarning, match="cifar10/train: .* more than 255 events"):
        simulate_frames(split(1), 1, loud)
