"""Several workers are one run: the same losses, one writer, and nothing lost with a worker."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
from dataclasses import asdict
from functools import cache

import pytest
import torch
from safetensors.torch import load_file

from quadspike.data.streaming import StreamingLoader
from quadspike.training.checkpoint import load_checkpoint
from quadspike.training.evaluate import evaluate
from tests.kill_driver import ROOT, Accident
from tests.test_streaming import Numbers

COMMON = "--batch-size 240 --timesteps 2 --precision fp64 --device cpu"
SETTINGS = {
    name: f"{fields} {COMMON}".split()
    for name, fields in {
        "adam": "digits-mlp --optimizer adam --lr 0.003 --epochs 10",
        "sgd": "digits-mlp --optimizer sgd --lr 0.1 --epochs 10 --accumulate 2 --clip 1",
        "short": "digits-mlp --optimizer adam --lr 0.003 --epochs 2 --validation 100",
        "dropout": "digits-cnn --model resnet8 --dropout 0.2 --optimizer sgd --lr 0.1 --epochs 1",
        "heads": "digits-cnn --aid sml --loss im --im-weight 0.5 --epochs 1 --lr 0.1 "
        "--optimizer sgd",
        "imp": "digits-mlp --aid imp --loss lts --epochs 1 --optimizer sgd --lr 0.1",
        "average": "digits-mlp --ema 0.9 --epochs 1 --optimizer sgd --lr 0.1",
        "muon": "digits-mlp --optimizer muon --nesterov --epochs 1 --lr 0.1",
        "dropout-sgd": "digits-cnn --model resnet8 --dropout 0.2 --accumulate 2 "
        "--optimizer sgd --lr 0.1 --epochs 10",
        "dropout-adam": "digits-cnn --model resnet8 --dropout 0.5 --loss tet "
        "--residual sum-then-fire --optimizer adam --lr 0.003 --epochs 10",
    }.items()
}
EVERY_STEP = ("--checkpoint-minutes", "0")
CLOSE = 1e-9


@pytest.fixture(scope="module")
def runs(driver, tmp_path_factory):
    """Uninterrupted runs by setting and number of workers: the folder and the losses."""

    @cache
    def run(setting, workers=1):
        out = tmp_path_factory.mktemp(f"{setting}-{workers}") / "run"
        outcome = driver.run("train", *SETTINGS[setting], "--out", str(out), workers=workers)
        assert outcome.code == 0, outcome.text
        return out, outcome.losses

    return run


def metrics(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def apart(one, other):
    """The largest difference between two lists of losses."""
    assert len(one) == len(other) > 0
    return max(abs(a - b) for a, b in zip(one, other, strict=True))


def check_alike(folder, expected):
    """The runs came to the same weights and metrics, apart from rounding."""
    for which in ("last", "best"):
        found, wanted = (load_file(f / f"{which}.safetensors") for f in (folder, expected))
        torch.testing.assert_close(found, wanted, atol=1e-8, rtol=1e-8)
    for line, wanted in zip(metrics(folder), metrics(expected), strict=True):
        for name in ("train_loss", "grad_norm", "test_loss"):
            assert line[name] == pytest.approx(wanted[name], abs=1e-6)  # test losses in float32
        for name in ("epoch", "step", "train_accuracy", "test_accuracy"):
            assert line[name] == wanted[name]


# -- the same run ----------------------------------------------------------------------


@pytest.mark.parametrize("setting", ["adam", "sgd", "dropout", "heads", "imp", "average", "muon"])
def test_two_workers_follow_one(runs, setting):
    alone, together = runs(setting), runs(setting, 2)
    assert len(together[1]) == (50 if setting in ("adam", "sgd") else 5)
    assert apart(alone[1], together[1]) < CLOSE
    check_alike(together[0], alone[0])


@pytest.mark.slow
@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("setting", ["dropout-sgd", "dropout-adam"])
def test_fifty_steps_with_dropout_follow_one(runs, setting, workers):
    alone, together = runs(setting), runs(setting, workers)
    assert len(together[1]) == 50
    assert apart(alone[1], together[1]) < CLOSE
    check_alike(together[0], alone[0])


@pytest.mark.parametrize("more", [(), ("--ema", "0.9")])
def test_statistics_that_are_not_shared_make_another_run(driver, runs, tmp_path, more):
    """What `sync_norm` is for: without it each worker normalises by its own part."""
    out = tmp_path / "run"
    fields = (*SETTINGS["short"], "--no-sync-norm", *more)
    outcome = driver.run("train", *fields, "--out", str(out), workers=2)
    assert outcome.code == 0, outcome.text
    assert apart(outcome.losses, runs("short")[1]) > 1e-3
    # All are judged by the first worker's running statistics, which are those that are saved.
    repeated = evaluate(out, device="cpu")
    assert repeated.fresh.accuracy == repeated.recorded
    assert repeated.fresh.loss == pytest.approx(metrics(out)[-1]["test_loss"], abs=1e-6)


@pytest.mark.parametrize("workers", [2, 3])
def test_every_test_sample_counts_once(runs, workers):
    """359 of them: neither 2 nor 3 divide it. The accuracies are fractions of the same count."""
    alone, together = (metrics(runs("short", n)[0]) for n in (1, workers))
    for one, many in zip(alone, together, strict=True):
        for name in ("test_accuracy", "validation_accuracy"):
            assert many[name] == one[name]
        assert many["test_loss"] == pytest.approx(one["test_loss"], abs=1e-6)


def test_one_worker_writes(runs):
    together, alone = runs("short", 2)[0], runs("short")[0]
    files = {path.name for path in together.iterdir()}
    assert files == {path.name for path in alone.iterdir()}
    assert json.loads((together / "record.json").read_text())["environment"]["workers"] == 2


def test_a_batch_that_cannot_be_shared_is_refused(driver, tmp_path):
    out = tmp_path / "run"
    outcome = driver.run(
        "train", *SETTINGS["short"], "--batch-size", "241", "--out", str(out), workers=2
    )
    assert outcome.code == 2
    assert "batch of 241 does not fall into equal parts for 2 workers" in outcome.text
    assert "(worker 1)" in outcome.text
    assert not out.exists()


# -- another number of workers ---------------------------------------------------------


def go_on(driver, setting, out, first, then):
    """Stop after one step on `first` workers, after one more on `then`, and finish on `first`."""
    command = ("train", *SETTINGS[setting], "--out", str(out), "--resume")
    losses = []
    for workers, more in ((first, 75), (then, 75), (first, 0)):
        stop = ("--stop-after", "1e-6") if more else ()
        outcome = driver.run(*command, *stop, workers=workers)
        assert outcome.code == more, outcome.text
        losses += outcome.losses
    return losses


@pytest.mark.parametrize(("first", "then"), [(2, 1), (1, 2)])
def test_a_run_goes_on_with_another_number_of_workers(driver, runs, tmp_path, first, then):
    alone = runs("short")
    losses = go_on(driver, "short", tmp_path / "run", first, then)
    assert apart(losses, alone[1]) < CLOSE
    check_alike(tmp_path / "run", alone[0])


@pytest.mark.slow
@pytest.mark.parametrize(("first", "then"), [(2, 1), (1, 3), (3, 2)])
@pytest.mark.parametrize("setting", ["dropout-sgd", "sgd"])
def test_longer_runs_change_their_workers(driver, runs, tmp_path, setting, first, then):
    alone = runs(setting)
    losses = go_on(driver, setting, tmp_path / "run", first, then)
    assert apart(losses, alone[1]) < CLOSE
    check_alike(tmp_path / "run", alone[0])


# -- signals -----------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [0, 1])
def test_a_signal_to_one_worker_ends_the_evaluation_of_all(driver, runs, tmp_path, rank):
    out = tmp_path / "run"
    command = ("train", *SETTINGS["short"], "--out", str(out))
    accident = Accident("count", 2, signal=signal.SIGTERM, rank=rank)
    outcome = driver.run(*command, accident=accident, workers=2)
    assert outcome.code == 143, outcome.text
    assert not (out / "metrics.jsonl").exists()
    stopped = load_checkpoint(out / "checkpoint.safetensors").progress
    assert (stopped.epoch, stopped.step, stopped.history) == (0, 5, [])
    assert driver.run(*command, "--resume", workers=2).code == 0
    same_bytes(out, runs("short", 2)[0])
    check_alike(out, runs("short", 2)[0])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_decoders_leave_signals_to_the_run(number):
    """`torchrun` and SLURM signal all processes; a run that is to save needs its decoders."""
    before = set(multiprocessing.active_children())
    batches = StreamingLoader(Numbers(80), 4, workers=1).epoch()
    seen = [next(batches)]
    (decoder,) = set(multiprocessing.active_children()) - before
    os.kill(decoder.pid, number)
    assert len([*seen, *batches]) == 20


# -- torchrun --------------------------------------------------------------------------


def torchrun(*arguments, accident, restarts=0):
    command = ("--max-restarts", str(restarts), "-m", "tests.kill_driver", *arguments)
    return two_workers(*command, ACCIDENT=json.dumps(asdict(accident)))


def two_workers(*command, **variables):
    start = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), **variables}
    return subprocess.run(
        [*start, *command], capture_output=True, text=True, cwd=ROOT, env=env, timeout=240
    )


SEVERAL = """
import faulthandler, sys
from quadspike.training import Recipe, train

faulthandler.dump_traceback_later(60, exit=True)
for seed in range(6):
    recipe = Recipe("mine", "digits", "mlp", epochs=1, batch_size=480, seed=seed)
    train(recipe, out=f"{sys.argv[1]}/{seed}", device="cpu")
"""


def test_the_same_workers_make_one_run_after_the_other(tmp_path):
    script = tmp_path / "several.py"
    script.write_text(SEVERAL)
    done = two_workers(str(script), str(tmp_path))
    assert len(list(tmp_path.glob("*/record.json"))) == 6, done.stderr


def same_bytes(folder, expected):
    for which in ("last", "best"):
        found, wanted = (load_file(f / f"{which}.safetensors") for f in (folder, expected))
        assert all(torch.equal(found[name], tensor) for name, tensor in wanted.items())


@pytest.mark.parametrize("every", ["0", pytest.param("5", marks=pytest.mark.slow)])
def test_a_lost_worker_is_replaced(runs, tmp_path, every):
    out = tmp_path / "run"
    done = torchrun(
        *("train", *SETTINGS["short"], "--checkpoint-minutes", every, "--out", str(out)),
        accident=Accident("step", 7, rank=1),
        restarts=2,
    )
    assert done.returncode == 0, done.stderr
    assert "-9" in done.stderr
    assert ("going on after step 6" in done.stdout) == (every == "0")
    same_bytes(out, runs("short", 2)[0])


@pytest.mark.slow
def test_a_lost_first_worker_is_replaced(runs, tmp_path):
    out = tmp_path / "run"
    accident = Accident("replace", 5, "before", rank=0)
    done = torchrun(
        *("train", *SETTINGS["short"], *EVERY_STEP, "--out", str(out)),
        accident=accident,
        restarts=1,
    )
    assert done.returncode == 0, done.stderr
    same_bytes(out, runs("short", 2)[0])


def test_torchrun_told_to_stop_lets_the_run_save(driver, runs, tmp_path):
    out = tmp_path / "run"
    done = torchrun(
        *("train", *SETTINGS["short"], "--out", str(out)),
        accident=Accident("step", 3, signal=signal.SIGTERM, parent=True),
    )
    assert done.returncode != 0
    assert "everything is saved in" in done.stdout
    stopped = load_checkpoint(out / "checkpoint.safetensors").progress
    assert stopped.epoch * 5 + stopped.step >= 3
    command = ("train", *SETTINGS["short"], "--out", str(out), "--resume")
    assert driver.run(*command, workers=2).code == 0
    same_bytes(out, runs("short", 2)[0])


def test_under_torchrun_a_run_whose_time_is_up_has_its_record(tmp_path):
    out = tmp_path / "run"
    done = torchrun(
        *("train", *SETTINGS["dropout"], "--stop-after", "1e-6", "--out", str(out)),
        accident=Accident("step", 999),
    )
    assert done.returncode != 0
    assert "its time was up" in done.stdout
    assert json.loads((out / "record.json").read_text())["summary"]["status"] == "stopped"


@pytest.mark.slow
def test_torchrun_does_not_restart_a_run_whose_time_is_up(tmp_path):
    out = tmp_path / "run"
    done = torchrun(
        *("train", *SETTINGS["short"], "--stop-after", "1e-6", "--out", str(out)),
        accident=Accident("step", 999),
        restarts=1,
    )
    assert done.returncode == 0, done.stderr
    assert "its time was up" in done.stdout
    assert load_checkpoint(out / "checkpoint.safetensors").progress.step == 1
