"""Runs one after the other in one process, which starts once and loads their data once."""

from __future__ import annotations

import gc
import os
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import torch

from quadspike.errors import DataError, QuadspikeError, WriteError
from quadspike.training.distributed import Workers, asked_workers, choose_device
from quadspike.training.finish import Result
from quadspike.training.folder import RunFolder
from quadspike.training.observer import Observer
from quadspike.training.pace import Pace
from quadspike.training.recipe import Recipe
from quadspike.training.shared_data import SharedData
from quadspike.training.start import train
from quadspike.training.stop import OUT_OF_TIME


class End(Protocol):
    """What a run came to; where `failure` says why, to nothing."""

    @property
    def failure(self) -> str: ...

    @property
    def seconds(self) -> float | None: ...

    def said(self) -> str:
        """The figure, in words."""
        ...


E = TypeVar("E", bound=End)


class Job(Protocol[E]):
    """One run of a queue."""

    @property
    def title(self) -> str: ...

    @property
    def recipe(self) -> Recipe:
        """What is trained; may be refused, which is then how the run ends."""
        ...

    @property
    def folder(self) -> Path: ...

    def outcome(self) -> E | None:
        """What an earlier call has come to, if it has."""
        ...

    def finished(self, result: Result, pace: Pace) -> E:
        """What the run has come to now."""
        ...

    def failed(self, reason: str) -> E:
        """The same where it has come to nothing."""
        ...

    def keep(self, outcome: E) -> None:
        """Note it, for the calls to come."""
        ...


class Watcher(Observer):
    """Sees every run of a queue as an `Observer` does, and where the whole stands."""

    def start(self, job: Job[Any], number: int, total: int) -> None:
        """The `number`-th of `total` runs is next."""

    def done(self, outcome: End) -> None:
        """That run has come to its end, now or in an earlier call."""


def only_place(what: str, device: str) -> torch.device:
    """The device of the one process that a queue has; `what` asks for it."""
    if asked_workers().many:
        raise QuadspikeError(f"a {what} is one process; start it without torchrun")
    return choose_device(device, Workers())


def check_folders(jobs: Sequence[Job[Any]]) -> None:
    """Refuse a run's folder that holds another recipe or a damaged outcome, before any work."""
    for job in jobs:
        if os.path.exists(RunFolder(job.folder).recipe):
            RunFolder(job.folder).check(job.recipe, resume=True)
        job.outcome()


def run_all(
    jobs: Sequence[Job[E]],
    place: torch.device,
    root: str | Path | None,
    watcher: Watcher,
    keep: Callable[[], None],
    stop_after: float | None = None,
) -> tuple[list[E], int]:
    """The outcomes so far, and the exit code: of what stopped it, else 1 if a run has failed.

    What has come to an end is not run again, what was interrupted is resumed. `stop_after` so
    many minutes it saves and ends, as it does on a signal. `keep` is called after every run that
    was made, before anything is written of it; see `RunFolder.opened`.
    """
    deadline = None if stop_after is None else time.monotonic() + 60 * stop_after
    outcomes: list[E] = []
    data = SharedData(place, root)
    for number, job in enumerate(jobs, 1):
        watcher.start(job, number, len(jobs))
        outcome = job.outcome()
        if outcome is None:
            left = None if deadline is None else (deadline - time.monotonic()) / 60
            if left is not None and left <= 0:
                return outcomes, OUT_OF_TIME
            found = _run(job, place, data, watcher, left)
            keep()
            if isinstance(found, int):
                return outcomes, found
            job.keep(found)
            outcome = found
        outcomes.append(outcome)
        watcher.done(outcome)
    return outcomes, int(any(outcome.failure for outcome in outcomes))


def _run(
    job: Job[E], place: torch.device, data: SharedData, watcher: Watcher, left: float | None
) -> E | int:
    """What a run has come to, or its exit code where it was stopped before its end."""
    _free(place)
    try:
        recipe = job.recipe
    except QuadspikeError as error:
        return job.failed(str(error))
    pace = Pace()
    try:
        result = train(
            recipe,
            data=data.of(recipe),
            out=job.folder,
            device=str(place),
            resume=True,
            stop_after=left,
            observers=[pace, watcher],
        )
        return result.exit_code or job.finished(result, pace)
    except (DataError, WriteError):
        raise  # no run's defect, and would be every other's too
    except Exception as error:
        # One run's defect must not cost the others.
        return job.failed(_reason(error))


def _free(place: torch.device) -> None:
    """Give back what the run before held, its CUDA graphs too; a peak is of one run alone."""
    if place.type == "cuda":
        gc.collect()  # a run is a cycle: its parts know each other
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(place)


def _reason(error: Exception) -> str:
    if isinstance(error, QuadspikeError):
        return str(error)
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(place.filename).name}, line {place.lineno})"
