"""What a comparison has to run, and where."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from quadspike.comparison.outcome import Outcome
from quadspike.methods import Method
from quadspike.models import load_model
from quadspike.training.finish import Result
from quadspike.training.folder import CommonFolder, RunFolder
from quadspike.training.network import count_parameters
from quadspike.training.pace import Pace
from quadspike.training.recipe import Recipe
from quadspike.training.record import made_on


@dataclass(frozen=True)
class Job:
    """One run: a method under the common recipe, with a seed."""

    method: Method
    seed: int
    base: Recipe
    out: Path

    @property
    def title(self) -> str:
        return f"{self.method.key} seed {self.seed}"

    @property
    def recipe(self) -> Recipe:
        """The run's own; refused where the method does not go with the common one."""
        return self.method.applied_to(self.base.but(seed=self.seed))

    @property
    def folder(self) -> Path:
        return self.out / self.method.key / f"seed-{self.seed}"

    @property
    def file(self) -> Path:
        """Where the outcome is kept; deleting it gives a failed run another try."""
        return self.folder.with_suffix(".json")

    def outcome(self) -> Outcome | None:
        """What an earlier call has come to, if it has."""
        return Outcome.read(self.file) if self.file.exists() else None

    def finished(self, result: Result, pace: Pace) -> Outcome:
        """The run in numbers."""
        folder, summary = RunFolder(result.folder), result.summary
        record = json.loads(folder.record.read_text(encoding="utf-8"))
        flags = {flag for row in record["energy"] for flag in row["flags"]} & {"graded", "integer"}
        return Outcome(
            self.method.key,
            self.seed,
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
            device=record["environment"]["device"],
            made_on=tuple(map(made_on, [*record["earlier_environments"], record["environment"]])),
        )

    def failed(self, reason: str) -> Outcome:
        """A run without numbers."""
        return Outcome(self.method.key, self.seed, failure=reason)

    def keep(self, outcome: Outcome) -> None:
        """Write it beside the run's folder."""
        outcome.write(self.file)


def plan(recipe: Recipe, methods: Iterable[Method], seeds: int, out: Path) -> list[Job]:
    """Every method once before any of them a second time, so that a table is there early."""
    chosen = list(methods)
    return [
        Job(method, recipe.seed + seed, recipe, out) for seed in range(seeds) for method in chosen
    ]


class ComparisonFolder(CommonFolder):
    """The folder of a comparison."""

    @property
    def record(self) -> Path:
        return self.path / "comparison.json"
