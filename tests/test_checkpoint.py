"""A checkpoint that is not whole, not ours or not this run's is refused; nothing in it is run."""

from __future__ import annotations

import json
import os
import pickle
import shutil

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from quadspike import QuadspikeError
from quadspike.training.checkpoint import (
    FORMAT,
    Progress,
    load_checkpoint,
    save_checkpoint,
)
from quadspike.training.recipe import Recipe
from tests.conftest import TRAIN, run_cli

RECIPE = Recipe("mine", dataset="digits", model="mlp", epochs=1)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A checkpoint of a few hundred bytes, and a place to put what becomes of it."""
    path = tmp_path_factory.mktemp("small") / "checkpoint.safetensors"
    tensors = {
        "model.weight": torch.arange(6.0).view(2, 3),
        "model.half": torch.ones(3, dtype=torch.bfloat16),
        "optimizer.step": torch.tensor(3.0),
        "totals.epoch": torch.zeros(4, dtype=torch.float64),
    }
    save_checkpoint(path, RECIPE, Progress(1, 2, history=[{"epoch": 1}]), tensors)
    return path


class Bomb:
    """A pickle of it leaves a file behind when it is loaded."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return open, (str(self.trace), "w")


def resume(run, capsys, reason):
    """Resuming is refused in one line that names the file, and changes nothing."""
    before = (run / "checkpoint.safetensors").read_bytes()
    assert run_cli(*TRAIN, "--out", str(run), "--resume") == 2
    said = capsys.readouterr().err
    assert str(run / "checkpoint.safetensors") in said
    assert reason in said
    assert len(said.strip().splitlines()) == 1
    assert (run / "checkpoint.safetensors").read_bytes() == before


def test_it_comes_back_as_it_was(small):
    found = load_checkpoint(small)
    assert found.recipe == RECIPE
    assert found.progress == Progress(1, 2, history=[{"epoch": 1}])
    assert found.part("model")["half"].dtype == torch.bfloat16
    assert found.part("optimizer")["step"].shape == ()


def truncated(content):
    return content[: len(content) // 2]


def flipped_at(where):
    def flip(content):
        place = where(content)
        return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]

    return flip


@pytest.mark.parametrize(
    "damage",
    [
        truncated,
        lambda content: b"",
        flipped_at(lambda content: 0),
        flipped_at(lambda content: 9),
        flipped_at(lambda content: content.index(b"progress")),
        flipped_at(lambda content: content.index(b"digits-mlp") + 2),
        flipped_at(lambda content: len(content) - 1),
        flipped_at(lambda content: len(content) // 2),
    ],
    ids=["cut", "empty", "length", "header", "field", "value", "last-byte", "in-a-tensor"],
)
def test_damage_is_noticed(run, capsys, damage):
    path = run / "checkpoint.safetensors"
    path.write_bytes(damage(path.read_bytes()))
    resume(run, capsys, "damaged, not a whole checkpoint")


def test_what_cannot_be_read_is_not_called_damaged(small, tmp_path):
    with pytest.raises(QuadspikeError, match=r"^cannot read .*: Is a directory; see to it"):
        load_checkpoint(tmp_path)
    if os.geteuid():  # root may read everything
        path = tmp_path / small.name
        shutil.copy(small, path)
        path.chmod(0)
        with pytest.raises(QuadspikeError, match=r"^cannot read .*: Permission denied"):
            load_checkpoint(path)


def test_foreign_files_are_refused(run, capsys):
    path = run / "checkpoint.safetensors"
    shutil.copy(run / "last.safetensors", path)
    resume(run, capsys, "is not a checkpoint of quadspike")
    save_file({"x": torch.zeros(3)}, path)
    resume(run, capsys, "is not a checkpoint of quadspike")
    path.write_bytes(b"not safetensors at all, only words")
    resume(run, capsys, "damaged, not a whole checkpoint")


def test_nothing_in_a_file_is_run(run, tmp_path, capsys):
    path, trace = run / "checkpoint.safetensors", tmp_path / "trace"
    path.write_bytes(pickle.dumps(Bomb(trace)))
    resume(run, capsys, "damaged")
    torch.save({"model": Bomb(trace)}, path)
    resume(run, capsys, "damaged")
    assert not trace.exists()
    pickle.loads(pickle.dumps(Bomb(trace)))
    assert trace.exists()  # it would have worked


def test_a_newer_format_is_refused(run, capsys):
    path = run / "checkpoint.safetensors"
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header, rest = json.loads(file.read(size)), file.read()
    content = json.loads(header["__metadata__"]["quadspike-checkpoint"])
    content["format"] = FORMAT + 1
    header["__metadata__"]["quadspike-checkpoint"] = json.dumps(content)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + rest)
    resume(run, capsys, f"has format {FORMAT + 1}, this version of quadspike reads format {FORMAT}")


def test_another_run_s_checkpoint_is_refused(run, tmp_path, capsys):
    other = tmp_path / "other"
    assert run_cli(*TRAIN, "--out", str(other), "--seed", "5") == 0
    shutil.copy(other / "checkpoint.safetensors", run / "checkpoint.safetensors")
    resume(run, capsys, "is of another run")


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_random_damage_is_refused_or_harmless(small, data):
    whole = small.read_bytes()
    content = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(content) - 1))
        kind = data.draw(st.sampled_from(["flip", "set", "cut", "insert", "remove"]))
        if kind == "flip":
            content[place] ^= 1 << data.draw(st.integers(0, 7))
        elif kind == "set":
            content[place] = data.draw(st.integers(0, 255))
        elif kind == "cut":
            del content[max(1, place) :]
        elif kind == "insert":
            content[place:place] = data.draw(st.binary(max_size=9))
        else:
            del content[place : place + data.draw(st.integers(1, 9))]
        if not content:
            break
    mutated = small.with_name("mutated")
    mutated.write_bytes(content)
    good = load_checkpoint(small)
    try:
        found = load_checkpoint(mutated)
    except QuadspikeError:
        pass
    else:
        assert (found.recipe, found.progress) == (good.recipe, good.progress)
        assert found.tensors.keys() == good.tensors.keys()
        assert all(torch.equal(found.tensors[name], t) for name, t in good.tensors.items())
