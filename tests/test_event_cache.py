from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from quadspike import QuadspikeError
from quadspike.data.events import cache as cache_module
from quadspike.data.events import clips
from quadspike.data.events.aedat import write_aedat
from quadspike.data.events.folder import load_event_folder
from quadspike.data.events.form import Events
from quadspike.errors import QuadspikeWarning
from tests.event_files import load, recording, write_all


@pytest.fixture
def root(tmp_path):
    return write_all(tmp_path / "data")


def test_a_broken_recording_is_named_and_leaves_no_cache(root):
    (root / "deer" / "cifar10_deer_9.aedat").write_bytes(b"#!AER-DAT2.0\r\n\0\0\0")
    with pytest.raises(QuadspikeError, match=r"cifar10_deer_9\.aedat: cut short"):
        load(root)
    assert [path.suffix for path in (root / "frames").iterdir()] == [".lock"]


def only(folder, pattern="*.frames"):
    (path,) = folder.glob(pattern)
    return path


def test_the_cache_is_a_line_of_json_and_bytes(root):
    load(root)
    path = only(root / "frames")
    with path.open("rb") as file:
        header = json.loads(file.readline())
        assert file.tell() == 4096
    assert header["quadspike frames"] == cache_module.FORMAT
    assert header["shape"] == [80, 10, 2, 48, 48]
    assert header["levels"] == 16
    assert header["parameters"]["camera"] == "sideways"
    assert path.stat().st_size == 4096 + 80 * 10 * 2 * 48 * 48


def built(root, **options):
    """How many recordings were read to answer."""
    done = []
    load(root, progress=lambda number, total: done.append(number), **options)
    return len(done)


def test_a_cache_is_built_once_for_all_splits(root):
    assert built(root) == 80
    assert built(root, split="random") == 0
    first = load(root)[0].inputs
    assert torch.equal(first, load(root)[0].inputs)


def only_bytes(root):
    load(root)
    return only(root / "frames").read_bytes()


def test_a_stale_cache_is_built_anew(root, monkeypatch):
    assert built(root) == 80
    changed = root / "cat" / "cifar10_cat_10.aedat"
    write_aedat(recording(77), changed)
    assert built(root) == 80
    os.utime(changed, ns=(1, 1))
    assert built(root) == 80
    changed.unlink()
    assert built(root) == 79
    assert len(list((root / "frames").glob("*.frames"))) == 1
    monkeypatch.setattr(cache_module, "FORMAT", cache_module.FORMAT + 1)
    assert built(root) == 79
    assert built(root, steps=3) == 79
    assert built(root) == 0


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


def scribble(path):
    path.write_bytes(b"[1, 2]" + path.read_bytes()[6:])


def empty(path):
    path.write_bytes(b"")


def flip(path):
    data = bytearray(path.read_bytes())
    data[-1000] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("damage", [cut, scribble, empty, flip])
def test_a_damaged_cache_is_built_anew(root, damage):
    assert built(root) == 80
    good = only_bytes(root)
    damage(only(root / "frames"))
    assert built(root) == 80
    assert only_bytes(root) == good


def test_clipped_pixels_are_told_and_noted(tmp_path):
    busy = Events.of([0] * 300, [1] * 300, [1] * 300, [1] * 300, width=128, height=128)
    for number in (0, 500):
        write_aedat(busy, tmp_path / "cat" / f"cifar10_cat_{number}.aedat")
    with pytest.warns(QuadspikeWarning, match=r"cifar10-dvs: 2 of .* more than 255 events"):
        load(tmp_path, steps=1, size=None)
    assert json.loads(only(tmp_path / "frames").read_bytes()[:4096])["clipped"] == 2


def test_a_folder_that_cannot_be_written_is_named(root, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    for place in (tmp_path / "file" / "frames", Path("/proc/frames")):
        with pytest.raises(
            QuadspikeError, match=r"cannot be kept there.*cache=FOLDER in Python, or .* links"
        ):
            load(root, cache=place)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_serves_a_cache_but_takes_none(root):
    load(root)
    (root / "frames").chmod(0o555)
    assert built(root) == 0
    with pytest.raises(QuadspikeError, match="Permission denied"):
        load(root, steps=2)
    (root / "frames").chmod(0o755)


def test_a_full_disk_is_told_before_and_during_the_work(root, monkeypatch):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10**6, hard))
        with pytest.raises(QuadspikeError, match="File too large"):
            load(root)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    monkeypatch.setattr(cache_module.shutil, "disk_usage", lambda _: SimpleNamespace(free=10**6))
    with pytest.raises(QuadspikeError, match="No space left"):
        load(root)
    assert [path.suffix for path in (root / "frames").iterdir()] == [".lock"]


SCRIPT = """
import os, signal, sys, time
from quadspike.data.events.cifar10dvs import load_cifar10dvs

def progress(done, total):
    if done == int(sys.argv[2]):
        print("there", flush=True)
        time.sleep(float(sys.argv[3]))

if __name__ == "__main__":
    load_cifar10dvs(sys.argv[1], split="tebn", allow_partial=True, progress=progress,
                    workers=int(sys.argv[4]))
    print("whole", flush=True)
"""


def start(root, at, wait, workers=0):
    command = [sys.executable, "-c", SCRIPT, str(root), str(at), str(wait), str(workers)]
    if workers:
        script = root.parent / "build.py"
        script.write_text(SCRIPT)
        command[1:3] = [str(script)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def test_a_killed_build_leaves_nothing_to_be_mistaken_for_whole(root):
    build = start(root, 40, 60)
    assert build.stdout.readline() == "there\n"
    assert len(list((root / "frames").glob(".*.partial"))) == 1
    build.send_signal(signal.SIGKILL)
    build.wait()
    assert not list((root / "frames").glob("*.frames"))
    assert built(root) == 80
    assert not list((root / "frames").glob(".*.partial"))


def test_what_a_killed_build_left_is_swept_up_whatever_the_folder_is_called(tmp_path):
    def make(tone):
        for number in range(2):
            path = tmp_path / "set [a-b]*" / "class" / f"{tone}{number}.aedat"
            write_aedat(recording(number), path)
        return load_event_folder(tmp_path / "set [a-b]*", 4, split="last")

    make("low")
    frames = only(tmp_path / "set [a-b]*.frames")
    left_over = frames.with_name(f".{frames.name}.1-abcd.partial")
    left_over.touch()
    make("high")
    assert not left_over.exists()


def test_a_second_process_waits_and_reads_what_the_first_made(root):
    first = start(root, 10, 1.5)
    assert first.stdout.readline() == "there\n"
    assert built(root) == 0
    assert first.stdout.readline() == "whole\n"
    assert first.wait() == 0


@pytest.mark.slow
def test_processes_make_the_same_frames_and_end_with_their_parent(root):
    done = []
    many = load(root, workers=2, progress=lambda number, total: done.append(number))
    assert done == list(range(1, 81))
    alone = load(root, workers=0, cache=root / "other")
    assert torch.equal(many[0].inputs, alone[0].inputs)
    only(root / "frames").unlink()
    build = start(root, 8, 60, workers=2)
    assert build.stdout.readline() == "there\n"
    workers = children(build.pid)
    assert len(workers) >= 2
    build.send_signal(signal.SIGKILL)
    build.wait()
    until = time.monotonic() + 10
    while any(Path(f"/proc/{worker}").exists() for worker in workers):
        assert time.monotonic() < until
        time.sleep(0.1)


def children(parent):
    """The processes that are making frames for another."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            command = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if int(fields[1]) == parent and b"spawn_main" in command:
            found.append(int(entry.name))
    return found


@pytest.mark.slow
def test_a_broken_recording_is_named_by_processes_too(root):
    (root / "frog" / "cifar10_frog_0.aedat").write_bytes(b"nothing")
    with pytest.raises(QuadspikeError, match=r"cifar10_frog_0\.aedat: not an AEDAT file"):
        load(root, workers=2)


def test_frames_are_made_on_the_processors_that_may_be_used(monkeypatch):
    asked = []

    def pool(workers, *_, **__):
        asked.append(workers)
        raise KeyboardInterrupt

    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 5, 6}, raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    monkeypatch.setattr(clips, "ProcessPoolExecutor", pool)
    with pytest.raises(KeyboardInterrupt):
        next(clips.make_clips([None] * 200, None, None))
    assert asked == [3]
