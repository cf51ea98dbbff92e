"""Runs of the command line that die where they are told to, alone or as several workers.

`python -m tests.kill_driver` imports torch once and then forks a process for every worker of
every job it reads, one JSON object a line; `Driver` is the other end of that pipe. With
`python -m tests.kill_driver train ...` it is one worker of `torchrun`, its accident in the
variable ACCIDENT, which happens in the first start only.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).parents[1]
PATIENCE = 90.0
"""Seconds after which a worker that hangs says where and ends."""


@dataclass(frozen=True)
class Accident:
    """At the `number`-th call (from 1) of `what` ("step", "count" of a batch of an evaluation,
    "write", "fsync" or "replace") in the worker `rank`, `when` ("before", "after", or "half" of
    the bytes of a write), the process gets `signal`, or `parent` does, or the call fails with
    `errno`.
    """

    what: str
    number: int
    when: str = "before"
    signal: int = signal.SIGKILL
    errno: int = 0
    rank: int = 0
    parent: bool = False

    def happen(self) -> None:
        if self.errno:
            raise OSError(self.errno, os.strerror(self.errno))
        os.kill(os.getppid() if self.parent else os.getpid(), self.signal)


@dataclass(frozen=True)
class Outcome:
    """The exit code of the first worker that has one (or minus the signal), and what all of them
    said; the first worker's calls, and the mean loss so far in the epoch, after each step.
    """

    code: int
    text: str
    calls: dict[str, int] = field(default_factory=dict)
    losses: list[float] = field(default_factory=list)


class Driver:
    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.kill_driver"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            text=True,
        )

    def run(
        self,
        *arguments: str,
        accident: Accident | None = None,
        largest_file: int = 0,
        workers: int = 1,
    ) -> Outcome:
        job = {
            "arguments": arguments,
            "accident": asdict(accident) if accident else None,
            "largest_file": largest_file,
            "workers": workers,
        }
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(job) + "\n")
        self._server.stdin.flush()
        return Outcome(**json.loads(self._server.stdout.readline()))

    def close(self) -> None:
        self._server.kill()
        self._server.wait()


def install(accident: Accident | None) -> tuple[Counter[str], list[float]]:
    """Count calls and keep losses from now on, and let the accident happen."""
    from quadspike.cli.display import Display
    from quadspike.training import scoring
    from quadspike.training.step import Step

    calls: Counter[str] = Counter()
    losses: list[float] = []
    if accident and accident.rank != int(os.environ.get("RANK", "0")):
        accident = None

    def watched(what: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*arguments: Any) -> Any:
            calls[what] += 1
            if accident is None or (accident.what, accident.number) != (what, calls[what]):
                return call(*arguments)
            if accident.when == "half":
                handle, content = arguments
                call(handle, content[: len(content) // 2])
            if accident.when == "after":
                result = call(*arguments)
                accident.happen()
                return result
            accident.happen()
            return call(*arguments)

        return wrapper

    Step.__call__ = watched("step", Step.__call__)  # type: ignore[method-assign]
    scoring.Counter.__call__ = watched(  # type: ignore[method-assign]
        "count", scoring.Counter.__call__
    )
    os.write = watched("write", os.write)
    os.fsync = watched("fsync", os.fsync)
    os.replace = watched("replace", os.replace)
    Display.moment = lambda self, now: losses.append(now.loss)  # type: ignore[method-assign]
    return calls, losses


def child(job: dict[str, Any], said: int, counted: str) -> NoReturn:
    """One worker; never returns."""
    from quadspike.cli import main

    code = 99
    os.dup2(said, 1)
    os.dup2(said, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    faulthandler.dump_traceback_later(PATIENCE, exit=True)
    calls, losses = install(Accident(**job["accident"]) if job["accident"] else None)
    if job["largest_file"]:
        import resource

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (job["largest_file"],) * 2)
    try:
        main(job["arguments"])
        code = 0
    except SystemExit as stop:
        code = int(stop.code or 0)
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    if os.environ.get("RANK", "0") == "0":
        Path(counted).write_text(json.dumps({"calls": calls, "losses": losses}))
    os._exit(code)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def serve() -> None:
    import torch

    import_module("quadspike.cli.train")  # or the command line would in every fork
    torch.set_num_threads(1)  # threads do not live on in a fork
    for line in sys.stdin:
        job = json.loads(line)
        port, world = free_port(), job["workers"]
        with tempfile.NamedTemporaryFile() as said, tempfile.NamedTemporaryFile() as counted:
            children = []
            for rank in range(world):
                if not (started := os.fork()):
                    if world > 1:
                        places = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world}
                        os.environ |= {name: str(n) for name, n in places.items()}
                        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
                    child(job, said.fileno(), counted.name)
                children.append(started)
            codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
            kept = json.loads(Path(counted.name).read_text() or "{}")
            code = next((code for code in codes if code), 0)
            outcome = Outcome(code, Path(said.name).read_text(), **kept)
        print(json.dumps(asdict(outcome)), flush=True)


if __name__ == "__main__":
    if sys.argv[1:]:
        from quadspike.cli import program

        first = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
        install(Accident(**json.loads(os.environ["ACCIDENT"])) if first else None)
        program()
    else:
        serve()
