"""`compare`: every method under one recipe, one after the other, through `train`."""

from __future__ import annotations

import gc
import json
import traceback
from collections.abc import Iterable
from pathlib import Path

import torch

from quadspike.comparison.files import write_files
from quadspike.comparison.jobs import ComparisonFolder, Job, plan
from quadspike.comparison.outcome import Outcome
from quadspike.comparison.pace import Pace
from quadspike.comparison.rows import Comparison, summarise
from quadspike.errors import QuadspikeError, WriteError, check_count
from quadspike.methods import METHODS, Method, find_method
from quadspike.models import load_model
from quadspike.training.distributed import Workers, asked_workers, choose_device
from quadspike.training.finish import Result
from quadspike.training.folder import RunFolder
from quadspike.training.loop import train
from quadspike.training.network import count_parameters
from quadspike.training.observer import Observer
from quadspike.training.recipe import Recipe
from quadspike.training.record import environment
from quadspike.training.sources import TrainingData, make_data


class Watcher(Observer):
    """Sees every run of a comparison as an `Observer` does, and where the whole stands."""

    def start(self, job: Job, number: int, total: int) -> None:
        """The `number`-th of `total` runs is next."""

    def done(self, outcome: Outcome) -> None:
        """That run has come to its end, now or in an earlier call."""


def choose_methods(keys: Iterable[str] = ()) -> list[Method]:
    """The methods of those names, each once; all of them without a name.

    >>> [method.title for method in choose_methods(["qif", "tet"])]
    ['QIF', 'TET']
    """
    return [find_method(key) for key in dict.fromkeys(keys)] or list(METHODS.values())


def compare(
    recipe: Recipe,
    methods: Iterable[str] = (),
    *,
    out: str | Path,
    seeds: int = 1,
    device: str = "auto",
    data_root: str | Path | None = None,
    watcher: Watcher | None = None,
) -> Comparison:
    """Train `methods` (all of them without a name) under `recipe`, `seeds` times each.

    A run lies in `OUT/METHOD/seed-N`, the table in `OUT`. Called again it goes on: what is
    finished or has failed is not run again, what was interrupted is resumed. A signal saves and
    ends the run under way, and the comparison has its exit code; a full disk ends it at once.
    """
    chosen = choose_methods(methods)
    if asked_workers().many:
        raise QuadspikeError("a comparison is one process; start it without torchrun")
    place = choose_device(device, Workers())
    jobs = plan(recipe, chosen, check_count("seeds", seeds), Path(out))
    folder = ComparisonFolder(Path(out))
    with folder.opened(recipe, resume=True):
        for job in jobs:
            _check_folder(job)
        outcomes, code = _run_all(jobs, place, data_root, watcher or Watcher())
        rows = tuple(summarise(method, outcomes, recipe) for method in chosen)
        found = Comparison(recipe, seeds, rows, tuple(outcomes), environment(place, 1), code)
        write_files(found, folder)
    return found


def _check_folder(job: Job) -> None:
    """Refuse a run's folder that holds another recipe or a damaged outcome, before any work."""
    if RunFolder(job.folder).recipe.exists():
        RunFolder(job.folder).check(job.recipe, resume=True)
    job.outcome()


def _run_all(
    jobs: list[Job], place: torch.device, root: str | Path | None, watcher: Watcher
) -> tuple[list[Outcome], int]:
    """The outcomes so far, and the exit code of the run that was stopped, if one was."""
    outcomes: list[Outcome] = []
    data: dict[int, TrainingData] = {}
    for number, job in enumerate(jobs, 1):
        watcher.start(job, number, len(jobs))
        outcome = job.outcome()
        if outcome is None:
            if job.seed not in data:  # one for all methods: the same samples in the same order
                data = {job.seed: make_data(job.base.but(seed=job.seed), root, place, Workers())}
            found = _run(job, place, data[job.seed], watcher)
            if isinstance(found, int):
                return outcomes, found
            found.write(job.file)
            outcome = found
        outcomes.append(outcome)
        watcher.done(outcome)
    return outcomes, 0


def _run(job: Job, place: torch.device, data: TrainingData, watcher: Watcher) -> Outcome | int:
    """What a run has come to, or its exit code where it was stopped before its end."""
    pace = Pace()
    if place.type == "cuda":  # a peak is of this run alone
        gc.collect()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(place)
    try:
        result = train(
            job.recipe,
            data=data,
            out=job.folder,
            device=str(place),
            resume=True,
            observers=[pace, watcher],
        )
        return result.exit_code or _measured(job, result, pace)
    except WriteError:
        raise  # a full disk is no method's defect, and would be every other's too
    except Exception as error:
        # One method's defect must not cost the others their runs.
        return Outcome(job.method.key, job.seed, failure=_reason(error))


def _reason(error: Exception) -> str:
    if isinstance(error, QuadspikeError):
        return str(error)
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(place.filename).name}, line {place.lineno})"


def _measured(job: Job, result: Result, pace: Pace) -> Outcome:
    folder, summary = RunFolder(result.folder), result.summary
    record = json.loads(folder.record.read_text(encoding="utf-8"))
    flags = {flag for row in record["energy"] for flag in row["flags"]} & {"graded", "integer"}
    return Outcome(
        job.method.key,
        job.seed,
        accuracy=summary["test_accuracy"],
        best_accuracy=summary["best_test_accuracy"],
        step_ms=pace.step_ms,
        # Of a run that had nothing left to do it would be no peak of training.
        memory_gib=None if pace.step_ms is None else summary["peak_memory_gib"],
        firing_rate=summary.get("firing_rate"),
        energy_mj=summary.get("energy_mj"),
        energy_flags=tuple(sorted(flags)),
        parameters=count_parameters(load_model(folder.weights("last"))),
        seconds=summary["seconds"],
    )
