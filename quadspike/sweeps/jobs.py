"""What a sweep has to run, and where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quadspike.sweeps.files import write_files
from quadspike.sweeps.folder import SweepFolder
from quadspike.sweeps.settings import Setting
from quadspike.training.finish import Result
from quadspike.training.pace import Pace
from quadspike.training.recipe import Recipe
from quadspike.training.shared_data import data_key


@dataclass(frozen=True)
class Ended:
    """What a run came to; accuracies are shares, of the last epoch."""

    name: str
    failure: str = ""
    accuracy: float | None = None
    held_out: float | None = None
    seconds: float | None = None

    @classmethod
    def of(cls, name: str, summary: Mapping[str, Any]) -> Ended:
        """A finished run by its summary."""
        return cls(
            name,
            accuracy=summary["test_accuracy"],
            held_out=summary["validation_accuracy"],
            seconds=summary["seconds"],
        )

    def said(self) -> str:
        """The figure, in words."""
        held = "" if self.held_out is None else f"held out {self.held_out:.2%}, "
        return f"{held}test accuracy {self.accuracy:.2%}"


@dataclass(frozen=True)
class Job:
    """One run: a setting with a seed, by the name it has in the folder."""

    title: str
    setting: Setting
    seed: int
    sweep: SweepFolder

    @property
    def recipe(self) -> Recipe:
        return self.setting.recipe.but(seed=self.seed)

    @property
    def folder(self) -> Path:
        return self.sweep.path / self.title

    def outcome(self) -> Ended | None:
        """What an earlier call has come to, if it has."""
        state = self.sweep.state(self.title)
        if state.record is not None:
            return Ended.of(self.title, state.record.summary)
        return self.failed(state.failure) if state.failure else None

    def finished(self, result: Result, pace: Pace) -> Ended:
        """The run in numbers."""
        return Ended.of(self.title, result.summary)

    def failed(self, reason: str) -> Ended:
        """A run without numbers."""
        return Ended(self.title, failure=reason)

    def keep(self, outcome: Ended) -> None:
        """Note a failure, and put the run into the table."""
        if outcome.failure:
            self.sweep.fail(self.title, outcome.failure)
        write_files(self.sweep)


def plan(chosen: Iterable[Setting], seeds: int, sweep: SweepFolder) -> list[Job]:
    """Every setting once before any a second time; those of the same data next to each other."""
    listed, known = list(chosen), sweep.recipes()

    def job(setting: Setting, seed: int) -> Job:
        recipe = setting.recipe.but(seed=seed)
        same = [name for name, other in known.items() if other == recipe]
        return Job((*same, f"{setting.name}-seed{seed}")[0], setting, seed, sweep)

    jobs = [job(setting, setting.recipe.seed + more) for more in range(seeds) for setting in listed]
    order = list(dict.fromkeys(data_key(job.recipe) for job in jobs))
    return sorted(jobs, key=lambda job: order.index(data_key(job.recipe)))
