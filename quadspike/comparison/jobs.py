"""What a comparison has to run, and where."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from quadspike.comparison.outcome import Outcome
from quadspike.methods import Method
from quadspike.training.folder import RunFolder
from quadspike.training.recipe import Recipe


@dataclass(frozen=True)
class Job:
    """One run: a method under the common recipe, with a seed."""

    method: Method
    seed: int
    base: Recipe
    out: Path

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


def plan(recipe: Recipe, methods: Iterable[Method], seeds: int, out: Path) -> list[Job]:
    """Every method once before any of them a second time, so that a table is there early."""
    chosen = list(methods)
    return [
        Job(method, recipe.seed + seed, recipe, out) for seed in range(seeds) for method in chosen
    ]


class ComparisonFolder(RunFolder):
    """The folder of a comparison: `recipe.json` is what its runs have in common.

    From the moment that is written the folder is of that recipe, and refuses any other.
    """

    @property
    def record(self) -> Path:
        return self.path / "comparison.json"

    @property
    def begun(self) -> bool:
        return self.recipe.exists()
