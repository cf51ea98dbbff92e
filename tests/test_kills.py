"""Whatever ends a run, `--resume` takes it to the very weights it would have reached."""

from __future__ import annotations

import errno
import json
import random
import signal
from functools import cache

import pytest

from quadspike.training.checkpoint import load_checkpoint
from tests.kill_driver import Accident

SHORT = "--epochs 2 --batch-size 240 --timesteps 2 --validation 100 --device cpu"
ADAM, SGD = "--optimizer adam --lr 0.003", "--optimizer sgd --lr 0.1"
SETTINGS = {
    name: f"{fields} {SHORT}".split()
    for name, fields in {
        "adam": f"digits-mlp {ADAM}",
        "sgd": f"digits-mlp {SGD} --accumulate 2",
        "lif": f"digits-mlp {ADAM} --neuron lif --loss tet --precision bf16",
        "heads": f"digits-cnn {SGD} --aid sml --loss im --model resnet8",
        "shortcuts": f"digits-cnn {ADAM} --aid shortcuts --shortcut-form cosine --loss tet",
        "imp": f"digits-mlp {ADAM} --aid imp --loss lts",
        "dropout": f"digits-cnn {SGD} --model resnet8 --dropout 0.2 --clip 1",
        "average": f"digits-mlp {SGD} --ema 0.9 --train-timesteps 1 --full-epochs 1 "
        "--graded-epochs 1",
        "muon": "digits-mlp --optimizer muon --nesterov --lr 0.1",
    }.items()
}
EVERY_STEP = ("--checkpoint-minutes", "0")
CALLS = ("step", "write", "fsync", "replace")


@pytest.fixture(scope="module")
def uninterrupted(driver, tmp_path_factory):
    """What each setting comes to when nothing happens: its folder's content and its calls."""

    @cache
    def run(setting):
        out = tmp_path_factory.mktemp("reference") / setting
        outcome = driver.run("train", *SETTINGS[setting], *EVERY_STEP, "--out", str(out))
        assert outcome.code == 0, outcome.text
        return content(out), outcome.calls

    return run


def content(folder):
    """All of a finished run that does not depend on the time it took."""
    saved = load_checkpoint(folder / "checkpoint.safetensors")
    weights = {w: (folder / f"{w}.safetensors").read_bytes() for w in ("last", "best")}
    metrics = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    record = json.loads((folder / "record.json").read_text())
    assert saved.progress.history == metrics == record["metrics"]
    assert record["summary"]["status"] == "finished"
    for line in metrics:
        del line["seconds"], line["images_per_second"]
    tensors = {name: t.numpy().tobytes() for name, t in saved.tensors.items()}
    place = (saved.progress.epoch, saved.progress.step, saved.progress.best_epoch)
    return weights, metrics, tensors, place, record["weights"], record["layers"]


def check_folder(folder, checkpoint=False):
    """Every file that is there is whole."""
    if checkpoint or (folder / "checkpoint.safetensors").exists():
        load_checkpoint(folder / "checkpoint.safetensors")
    for path in folder.glob("*.json"):
        json.loads(path.read_text())
    for path in folder.glob("*.jsonl"):
        list(map(json.loads, path.read_text().splitlines()))


def finish(driver, setting, out):
    outcome = driver.run("train", *SETTINGS[setting], *EVERY_STEP, "--out", str(out), "--resume")
    assert outcome.code == 0, outcome.text
    assert not list(out.glob(".*.partial"))
    return content(out)


def draw(rng, calls, step_share=0.5):
    what = "step" if rng.random() < step_share else rng.choice(CALLS[1:])
    when = ("before", "after", "half") if what == "write" else ("before", "after")
    return Accident(what, rng.randint(1, calls[what]), rng.choice(when))


def kill_until_finished(driver, setting, out, expected, accidents, *, every="0"):
    command = ("train", *SETTINGS[setting], "--checkpoint-minutes", every, "--out", str(out))
    for accident in accidents:
        outcome = driver.run(*command, "--resume", accident=accident)
        # What is left of the run may have fewer calls than the accident waits for.
        assert outcome.code in (-signal.SIGKILL, 0), outcome.text
        check_folder(out)
    assert finish(driver, setting, out) == expected


@pytest.mark.parametrize(
    ("number", "setting"),
    list(enumerate(["adam", "sgd", "adam", "muon", "average", "heads", "shortcuts", "imp"])),
)
def test_a_killed_run_ends_alike(driver, uninterrupted, tmp_path, number, setting):
    expected, calls = uninterrupted(setting)
    accident = draw(random.Random(number), calls)
    kill_until_finished(driver, setting, tmp_path / "run", expected, [accident])


def test_a_run_killed_again_and_again_ends_alike(driver, uninterrupted, tmp_path):
    expected, calls = uninterrupted("adam")
    rng = random.Random(7)
    accidents = [Accident("step", 3), draw(rng, calls, 0), Accident("step", 2, "after")]
    kill_until_finished(driver, "adam", tmp_path / "run", expected, accidents)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(20))
def test_twenty_killed_runs_end_alike(driver, uninterrupted, tmp_path, number):
    rng = random.Random(1000 + number)
    setting = list(SETTINGS)[number % len(SETTINGS)]
    expected, calls = uninterrupted(setting)
    accidents = [draw(rng, calls) for _ in range(rng.randint(1, 3))]
    every = rng.choice(["0", "0.002", "5"])  # at every step, sometimes, and never
    kill_until_finished(driver, setting, tmp_path / "run", expected, accidents, every=every)


@pytest.mark.slow
@pytest.mark.parametrize("what", CALLS)
def test_a_kill_before_and_after_every_call_is_survived(driver, uninterrupted, tmp_path, what):
    expected, calls = uninterrupted("adam")
    for number in range(1, calls[what] + 1):
        for when in ("before", "half", "after") if what == "write" else ("before", "after"):
            out = tmp_path / f"{number}-{when}"
            accident = Accident(what, number, when)
            kill_until_finished(driver, "adam", out, expected, [accident])


# -- asked to stop ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("accident", "code"),
    [
        (Accident("step", 4, signal=signal.SIGTERM), 143),
        (Accident("step", 10, "after", signal=signal.SIGINT), 130),
        (Accident("step", 4, signal=signal.SIGHUP), 129),
        (Accident("write", 5, signal=signal.SIGTERM), 143),
    ],
    ids=["SIGTERM", "SIGINT", "SIGHUP", "SIGTERM-while-saving"],
)
def test_a_signal_saves_and_ends(driver, uninterrupted, tmp_path, accident, code):
    # No checkpoint is due, so that what is on the disk was saved because of the signal;
    # but the one that is to come while saving needs one.
    every = EVERY_STEP if accident.what == "write" else ()
    out = tmp_path / "run"
    command = ("train", *SETTINGS["adam"], *every, "--out", str(out))
    outcome = driver.run(*command, accident=accident)
    assert outcome.code == code
    assert "arrived; everything is saved in" in outcome.text
    assert "--resume" in outcome.text
    check_folder(out, checkpoint=True)
    assert json.loads((out / "record.json").read_text())["summary"]["status"] == "stopped"
    assert finish(driver, "adam", out) == uninterrupted("adam")[0]


@pytest.mark.parametrize("number", [1, 2, 5])
def test_a_signal_ends_an_evaluation(driver, uninterrupted, tmp_path, number):
    """One batch is held out, two are for the test; the second evaluation begins with the fourth."""
    out, setting = tmp_path / "run", "average"
    accident = Accident("count", number, signal=signal.SIGTERM)
    outcome = driver.run("train", *SETTINGS[setting], "--out", str(out), accident=accident)
    assert outcome.code == 143
    assert outcome.calls["count"] == number
    stopped = load_checkpoint(out / "checkpoint.safetensors").progress
    assert (stopped.epoch, stopped.step) == (number // 4, 5)
    assert len(stopped.history) == number // 4
    assert json.loads((out / "record.json").read_text())["metrics"] == stopped.history
    assert finish(driver, setting, out) == uninterrupted(setting)[0]


def test_a_run_whose_time_is_up_goes_on_later(driver, uninterrupted, tmp_path):
    out = tmp_path / "run"
    command = ("train", *SETTINGS["sgd"], "--out", str(out), "--stop-after", "1e-6", "--resume")
    for step in (1, 2, 3, 4, 5, 1):  # an evaluation is brought to its end
        outcome = driver.run(*command)
        assert outcome.code == 75
        assert "its time was up" in outcome.text
        assert load_checkpoint(out / "checkpoint.safetensors").progress.step == step
    assert finish(driver, "sgd", out) == uninterrupted("sgd")[0]


# -- a full disk -----------------------------------------------------------------------


@pytest.mark.parametrize("call", [("write", 1), ("write", 5), ("fsync", 9), ("replace", 17)])
def test_a_full_disk_leaves_what_was_saved_before(driver, uninterrupted, tmp_path, call):
    out = tmp_path / "run"
    command = ("train", *SETTINGS["adam"], *EVERY_STEP, "--out", str(out))
    outcome = driver.run(*command, accident=Accident(*call, errno=errno.ENOSPC))
    assert outcome.code == 2
    assert f"cannot write {out}" in outcome.text
    assert "No space left on device" in outcome.text
    assert "Traceback" not in outcome.text
    assert not list(out.glob(".*.partial"))
    check_folder(out, checkpoint=call != ("write", 1))
    assert finish(driver, "adam", out) == uninterrupted("adam")[0]


@pytest.mark.slow
def test_every_write_may_find_the_disk_full(driver, uninterrupted, tmp_path):
    expected, calls = uninterrupted("adam")
    for number in range(1, calls["write"] + 1):
        out = tmp_path / str(number)
        command = ("train", *SETTINGS["adam"], *EVERY_STEP, "--out", str(out))
        accident = Accident("write", number, "half", errno=errno.ENOSPC)
        outcome = driver.run(*command, accident=accident)
        assert outcome.code == 2, outcome.text
        check_folder(out)
        assert finish(driver, "adam", out) == expected


@pytest.mark.slow
def test_the_system_s_own_refusal_of_a_large_file(driver, uninterrupted, tmp_path):
    """A checkpoint gets larger with the best weights: the first one fits, a later one does not."""
    out = tmp_path / "run"
    command = ("train", *SETTINGS["adam"], *EVERY_STEP, "--out", str(out))
    outcome = driver.run(*command, largest_file=400_000)
    assert outcome.code == 2
    assert f"cannot write {out / 'checkpoint.safetensors'}: File too large" in outcome.text
    assert load_checkpoint(out / "checkpoint.safetensors").progress.step > 1
    assert finish(driver, "adam", out) == uninterrupted("adam")[0]
