"""Ctrl-C while modules are being imported."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from quadspike.cli.interrupts import held_back

SWALLOWING = """
import importlib.abc, signal, sys

signal.signal(signal.SIGINT, signal.default_int_handler)

class Swallowing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "torch":
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:  # as compiled modules may
                print("swallowed")

sys.meta_path.insert(0, Swallowing())
from quadspike.cli import program
program()
"""


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    """A shell's background jobs ignore interrupts; these tests may be one."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_comes_at_the_end_of_the_block() -> None:
    said: list[str] = []

    @held_back()
    def block() -> None:
        signal.raise_signal(signal.SIGINT)
        said.append("at its end")

    with pytest.raises(KeyboardInterrupt):
        block()
    assert said == ["at its end"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_ignored_interrupt_stays_ignored_and_another_thread_has_none() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with held_back():
        signal.raise_signal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    errors: list[BaseException] = []

    def work() -> None:
        try:
            with held_back():
                pass
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert not errors


@pytest.mark.parametrize("command", ["train digits-mlp", "quickstart"])
def test_a_run_does_not_begin_after_an_interrupt_among_its_imports(command: str, tmp_path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SWALLOWING, *command.split(), "--out", str(tmp_path / "run")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 130, done.stderr
    assert "interrupted" in done.stderr
    assert "swallowed" not in done.stdout
    assert not (tmp_path / "run").exists()


EARLY = """
import importlib.abc, signal, sys

class Interrupting(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "tyro":
            signal.raise_signal(signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupting())
from quadspike.__main__ import door
door()
"""


def test_an_interrupt_before_the_command_is_there_leaves_no_traceback() -> None:
    done = subprocess.run([sys.executable, "-c", EARLY, "models"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "quadspike: interrupted before it began\n")
