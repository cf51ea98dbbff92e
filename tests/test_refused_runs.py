"""What cannot be trained is refused in one line, before any work and without a trace; what goes
wrong later says where, and leaves the last checkpoint.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import ExitStack

import pytest
import torch
from safetensors.torch import load_file, save_file

from quadspike import QuadspikeError
from quadspike.data.split import Split
from quadspike.errors import WriteError
from quadspike.models import create_model, save_model
from quadspike.training.checkpoint import load_checkpoint
from quadspike.training.evaluate import evaluate
from quadspike.training.folder import RunFolder
from quadspike.training.observer import Observer
from quadspike.training.recipe import Recipe
from quadspike.training.scoring import Counter
from quadspike.training.start import train
from quadspike.training.step import Step
from tests.conftest import TRAIN, run_cli

RECIPE = Recipe("mine", dataset="digits", model="mlp", epochs=1, batch_size=700)


def refused(capsys, message, *arguments):
    """The command ends with code 2 and one line that matches."""
    assert run_cli(*TRAIN, *arguments) == 2
    said = capsys.readouterr().err
    assert "Traceback" not in said
    # What the recipe itself refuses comes in the parser's frame.
    assert said.startswith("quadspike: ") or "Value error" in said
    assert re.search(message, " ".join(re.sub("[|\u2502]", " ", said).split()))


# -- before any work -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--batch-size", "5000"], "batch of 5000 is larger than the 1,438 samples"),
        (["--batch-size", "1000", "--validation", "500"], "larger than the 938 samples"),
        (["--timesteps", "0"], "timesteps must be a whole number >= 1, got 0"),
        (["--accumulate", "3"], "batch of 700 does not fall into 3 equal parts"),
        (["--dataset", "imagenet", "--data-root", "/nowhere"], "/nowhere/imagenet/train"),
        (["--dataset", "cifar10", "--data-root", "/nowhere"], "no CIFAR-10 under /nowhere"),
        (["--init-from", "/nowhere/w.safetensors"], "cannot read weights from /nowhere/w.safe"),
        (["--device", "cuda:7"], "no device 'cuda:7' here"),
        (["--device", "gpu"], "no device 'gpu' here"),
        (["--model", "resnet7"], "unknown model 'resnet7'; did you mean 'resnet"),
        (["--neuron", "adex"], "unknown neuron 'adex'"),
        (["--stop-after", "0"], "stop_after must be more than 0 minutes"),
        (["--checkpoint-minutes", "-1"], "checkpoint_minutes must be at least 0"),
    ],
)
def test_a_refused_start_leaves_nothing(tmp_path, capsys, arguments, message):
    if "cuda:7" in arguments and torch.cuda.device_count() > 7:
        pytest.skip("it is here")
    refused(capsys, message, "--out", str(tmp_path / "a" / "run"), *arguments)
    assert not list(tmp_path.iterdir())


def test_an_unknown_recipe_or_option_is_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_cli("train", "digits-mpl") == 2
    assert "did you mean 'digits-mlp'?" in capsys.readouterr().err
    assert run_cli("train", "digits-mlp", "--learning-rate", "1") == 2
    assert "--learning-rate" in capsys.readouterr().err
    assert run_cli("train", "--epochs", "1") == 2
    assert "name a recipe first" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def files(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# -- whose folder ----------------------------------------------------------------------


def test_another_run_s_folder_is_left_alone(run, capsys):
    before = files(run)
    message = "already holds a run of 'digits-mlp'; go on with it by --resume"
    refused(capsys, message, "--out", str(run))
    refused(
        capsys,
        r"recipe differs: epochs 1 -> 3, lr 0\.003 -> 0\.1; resume with the same recipe",
        *("--out", str(run), "--resume", "--epochs", "3", "--lr", "0.1"),
    )
    assert files(run) == before


def test_a_folder_of_something_else_is_left_alone(tmp_path, capsys):
    (tmp_path / "thesis.tex").write_text("years of work")
    for more in ((), ("--resume",)):
        refused(capsys, "holds files that are no run of quadspike", "--out", str(tmp_path), *more)
    refused(capsys, "thesis.tex is a file", "--out", str(tmp_path / "thesis.tex"))
    refused(capsys, "tex/run: Not a directory;", "--out", str(tmp_path / "thesis.tex" / "run"))
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"format": 1, "recipe": {"name": 3}}'])
def test_a_damaged_recipe_is_refused(run, capsys, content):
    (run / "recipe.json").write_text(content)
    refused(capsys, "recipe", "--out", str(run), "--resume")


def test_a_newer_folder_is_refused(run, capsys):
    (run / "recipe.json").write_text(json.dumps({"format": 2, "recipe": RECIPE.as_dict()}))
    refused(capsys, r"recipe\.json has format 2, this version .* format 1", "--out", str(run))


def test_two_processes_cannot_train_in_one_folder(run, capsys):
    """The other one holds the lock; when it is gone, so is the lock."""
    code = (
        "import fcntl, sys, time\n"
        "lock = open(sys.argv[1])\n"
        "fcntl.flock(lock, fcntl.LOCK_EX)\n"
        "print('locked', flush=True)\n"
        "time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(run / ".lock")], stdout=subprocess.PIPE
    ) as other:
        other.stdout.readline()
        refused(capsys, "another process is training in", "--out", str(run), "--resume")
        other.kill()
        other.wait()
    assert run_cli(*TRAIN, "--out", str(run), "--resume") == 0


def test_a_run_that_came_in_between_is_not_overwritten(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.check(RECIPE, resume=False)
    with folder.opened(RECIPE):
        folder.write_metrics([{"epoch": 1}])
    with pytest.raises(QuadspikeError, match=r"\(resume=True in Python"), folder.opened(RECIPE):
        pytest.fail("it was opened a second time")


class Meddler(Observer):
    """Does something to the run's folder after its first epoch."""

    def __init__(self, act):
        self.act = act

    def epoch(self, metrics):
        if metrics["epoch"] == 1:
            self.act()


@pytest.mark.filterwarnings("ignore:cannot write .*tensorboard")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("gone", [shutil.rmtree, lambda run: run.rename(run.parent / "moved")])
def test_a_folder_moved_or_removed_meanwhile_is_made_anew(tmp_path, gone):
    recipe, run = RECIPE.but(epochs=2), tmp_path / "run"
    whole = train(recipe, out=tmp_path / "whole", device="cpu")
    train(recipe, out=run, device="cpu", observers=[Meddler(lambda: gone(run))])
    assert RunFolder(run).read_recipe() == recipe
    for name in ("last.safetensors", "best.safetensors"):
        assert (run / name).read_bytes() == (whole.folder / name).read_bytes()
    again = train(recipe, out=run, device="cpu", resume=True)
    assert again.test_accuracy == whole.test_accuracy


def test_a_run_that_is_stopped_once_its_folder_is_gone_can_go_on(tmp_path, monkeypatch):
    class Stopper(Observer):
        def moment(self, now):
            shutil.rmtree(tmp_path / "run", ignore_errors=True)
            monkeypatch.setattr("quadspike.training.stop.Stop.code", 143)

    given = {"out": tmp_path / "run", "device": "cpu"}
    monkeypatch.setattr("quadspike.training.loop.tensorboard_installed", lambda: False)
    assert train(RECIPE, **given, observers=[Stopper()]).status == "stopped"
    monkeypatch.undo()
    assert train(RECIPE, **given, resume=True).status == "finished"


def test_a_run_whose_folder_goes_after_its_last_checkpoint_is_a_run_all_the_same(tmp_path):
    class Remover(Observer):
        def saved(self, step):
            shutil.rmtree(tmp_path / "run", ignore_errors=True)

    train(RECIPE, out=tmp_path / "run", device="cpu", observers=[Remover()])
    assert len((tmp_path / "run/metrics.jsonl").read_text().splitlines()) == RECIPE.epochs
    assert (tmp_path / "run/recipe.json").exists()
    assert evaluate(tmp_path / "run", device="cpu").recorded is not None


@pytest.mark.parametrize("ended", [True, False])
def test_a_folder_that_is_another_run_s_by_now_is_left_alone(tmp_path, ended):
    run, other = RunFolder(tmp_path / "run"), RECIPE.but(lr=0.5)
    with ExitStack() as runs:
        keep = runs.enter_context(run.opened(RECIPE))
        keep()
        run.path.rename(tmp_path / "moved")
        with ExitStack() as theirs:
            theirs.enter_context(run.opened(other))
            run.write_metrics([])
            if not ended:
                runs.enter_context(theirs.pop_all())
        reason = "whose recipe differs" if ended else "another process is training"
        with pytest.raises(WriteError, match=f"was moved or removed .*: .*{reason}"):
            keep()
    assert run.read_recipe() == other


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_place_one_may_not_write_to(tmp_path, capsys):
    (tmp_path / "locked").mkdir(mode=0o500)
    refused(capsys, "locked/run: Permission denied", "--out", str(tmp_path / "locked" / "run"))


def test_a_place_that_cannot_be_made(capsys):
    refused(capsys, "cannot write to /proc/here: No such file", "--out", "/proc/here")


@pytest.mark.parametrize(
    "model",
    [
        create_model("vggsnn", in_channels=1, num_classes=3, image_size=16),
        create_model("cnn", in_channels=1, num_classes=3).half(),
    ],
    ids=["size", "type"],
)
def test_a_network_of_ones_own_that_the_data_do_not_fit(tmp_path, model):
    recipe = RECIPE.but(dataset="own", batch_size=30)
    with pytest.raises(
        QuadspikeError, match=r"does not take .* \[2, 1, 8, 8\] of torch.float32"
    ) as said:
        train(recipe, model=model, data=tuple(three_classes()), out=tmp_path / "b", device="cpu")
    assert said.value.__cause__ is not None  # where in the network, which may be a slip in it


# -- weights from elsewhere ------------------------------------------------------------


def three_classes():
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 255, (60, 1, 8, 8), generator=generator, dtype=torch.uint8)
    return [Split("mine", pixels, torch.arange(60) % 3, ("a", "b", "c"))] * 2


def test_another_number_of_classes_needs_only_a_new_classifier(finished, tmp_path):
    recipe = RECIPE.but(dataset="own", batch_size=30, lr=1e-12)
    result = train(
        recipe, data=tuple(three_classes()), init_from=finished, out=tmp_path / "b", device="cpu"
    )
    old, new = (load_file(folder / "last.safetensors") for folder in (finished, tmp_path / "b"))
    (note,) = json.loads((result.folder / "record.json").read_text())["notes"]
    differing = [name for name in old if old[name].shape != new[name].shape]
    assert differing
    assert all(name in note for name in differing)
    for name in old.keys() - set(differing):
        if "running" not in name:
            torch.testing.assert_close(old[name], new[name], atol=1e-6, rtol=0)


def test_weights_of_another_network_are_refused(finished, tmp_path, capsys):
    other = save_model(create_model("cnn", in_channels=1), tmp_path / "cnn.safetensors")
    out = ("--out", str(tmp_path / "run"))
    refused(capsys, "of another network", *out, "--init-from", str(other))
    refused(capsys, "of another", *out, "--init-from", str(finished / "checkpoint.safetensors"))
    torch.save({"a": 1}, tmp_path / "pickle.pt")
    refused(capsys, "cannot read weights from", *out, "--init-from", str(tmp_path / "pickle.pt"))
    refused(capsys, "cannot read weights from", *out, "--init-from", str(tmp_path))
    assert not (tmp_path / "run").exists()


def test_a_run_remembers_the_weights_it_started_from(finished, tmp_path, capsys, monkeypatch):
    """One that was lost before its first checkpoint starts from them again, unasked."""
    whole, lost = tmp_path / "whole", tmp_path / "lost"
    start = ("--init-from", str(finished), "--seed", "3")
    assert run_cli(*TRAIN, *start, "--out", str(whole)) == 0
    with monkeypatch.context() as patch:
        patch.setattr(Step, "__call__", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run_cli(*TRAIN, *start, "--out", str(lost))
    assert not (lost / "checkpoint.safetensors").exists()
    resume = ("--seed", "3", "--out", str(lost), "--resume")
    refused(capsys, "started from .*done, not from", *resume, "--init-from", str(whole))
    assert run_cli(*TRAIN, *resume) == 0
    assert (lost / "last.safetensors").read_bytes() == (whole / "last.safetensors").read_bytes()
    notes = json.loads((lost / "record.json").read_text())["notes"]
    assert notes == [f"weights from {finished}"]


# -- later -----------------------------------------------------------------------------


def test_numbers_that_run_away_name_step_and_place(tmp_path, capsys):
    """The first step is made at a rate that ruins the second; the first is on the disk."""
    out = tmp_path / "run"
    more = ("--batch-size", "240", "--optimizer", "sgd", "--checkpoint-minutes", "0")
    refused(
        capsys,
        r"not a finite number at step 2 \(epoch 1\): first in (layer|the) .*lower --lr",
        *("--out", str(out), "--lr", "1e38", *more),
    )
    saved = load_checkpoint(out / "checkpoint.safetensors")
    assert saved.progress.step == 1
    assert not (out / "record.json").exists()


@pytest.mark.parametrize("layer", ["hidden1", "hidden2"])
@pytest.mark.parametrize("accumulate", ["1", "2"])
def test_the_layer_with_the_first_bad_number_is_named(
    finished, tmp_path, capsys, layer, accumulate
):
    weights = load_file(finished / "last.safetensors")
    (name,) = [n for n in weights if n.startswith(layer) and weights[n].ndim == 2]
    weights[name][0, 0] = float("nan")
    save_file(weights, tmp_path / "poisoned.safetensors")
    refused(
        capsys,
        rf"at step 1 \(epoch 1\): first in layer '{layer}\.soma'",
        *("--out", str(tmp_path / "run"), "--init-from", str(tmp_path / "poisoned.safetensors")),
        *("--accumulate", accumulate),
    )
    assert not (tmp_path / "run" / "checkpoint.safetensors").exists()


def test_a_lost_decoder_says_how_to_go_on(tmp_path, capsys, monkeypatch):
    """torch raises it in the middle of whatever the run is doing."""

    def fail(*_):
        raise RuntimeError("DataLoader worker (pid 7) is killed by signal: Killed. ")

    for owner, name in ((Step, "__call__"), (Counter, "__call__")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, fail)
            refused(
                capsys,
                r"images was lost \(DataLoader worker \(pid 7\) is killed by signal: Killed\.\)",
                *("--out", str(tmp_path / "run"), "--resume"),
            )


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried ..."),
    ],
    ids=["device", "host"],
)
def test_too_little_memory_says_what_would_fit(tmp_path, capsys, monkeypatch, error):
    def fail(*_):
        raise error

    monkeypatch.setattr(Step, "__call__", fail)
    refused(
        capsys,
        r"out of memory with a batch of 700 on one device at T = 2: a step needs about .* GiB",
        *("--out", str(tmp_path / "run")),
    )


def test_other_errors_are_not_taken_for_a_lack_of_memory(tmp_path, monkeypatch):
    def fail(*_):
        raise RuntimeError("something else")

    monkeypatch.setattr(Step, "__call__", fail)
    with pytest.raises(RuntimeError, match="something else"):
        train(RECIPE, out=tmp_path / "run", device="cpu")
