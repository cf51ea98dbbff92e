"""From the outcomes of all runs to one row a method."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from statistics import fmean, median, stdev
from typing import Any

from quadspike.comparison.cells import Cell, judge
from quadspike.comparison.outcome import Outcome
from quadspike.methods import Method
from quadspike.training.recipe import Recipe


@dataclass(frozen=True)
class Row:
    """A method's runs together: accuracies in percent, their sample deviation as the spread.

    The time of a step is the median over the runs, the memory the largest, the rest means.
    """

    method: Method
    runs: int
    failures: tuple[str, ...]
    accuracy: float | None
    spread: float | None
    step_ms: float | None
    memory_gib: float | None
    firing_rate: float | None
    energy_mj: float | None
    energy_flags: frozenset[str]
    parameters: int | None
    cell: Cell | None

    def as_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        plain = {k: v for k, v in vars(self).items() if k not in ("method", "cell")}
        cell = None if self.cell is None else asdict(self.cell)
        return {
            "method": self.method.key,
            "overrides": self.method.overrides,
            **plain,
            "energy_flags": sorted(self.energy_flags),
            "paper": cell,
        }


@dataclass(frozen=True)
class Comparison:
    """All rows, with what they have in common; the exit code is 1 if a run failed."""

    recipe: Recipe
    seeds: int
    rows: tuple[Row, ...]
    outcomes: tuple[Outcome, ...]
    environment: dict[str, Any]
    exit_code: int = 0

    def as_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {
            "recipe": self.recipe.as_dict(),
            "seeds": self.seeds,
            "environment": self.environment,
            "rows": [row.as_dict() for row in self.rows],
            "outcomes": [outcome.as_dict() for outcome in self.outcomes],
        }


def summarise(method: Method, outcomes: Iterable[Outcome], recipe: Recipe) -> Row:
    """The row of `method`, from those of the outcomes that are its own."""
    mine = [outcome for outcome in outcomes if outcome.method == method.key]
    good = [outcome for outcome in mine if not outcome.failure]
    accuracies = [100 * o.accuracy for o in good if o.accuracy is not None]
    return Row(
        method,
        len(good),
        tuple(dict.fromkeys(o.failure for o in mine if o.failure)),
        fmean(accuracies) if accuracies else None,
        stdev(accuracies) if len(accuracies) > 1 else None,
        _of(median, [o.step_ms for o in good]),
        _of(max, [o.memory_gib for o in good]),
        _of(fmean, [o.firing_rate for o in good]),
        _of(fmean, [o.energy_mj for o in good]),
        frozenset(flag for o in good for flag in o.energy_flags),
        next((o.parameters for o in good), None),
        judge(method, recipe),
    )


def _of(how: Any, values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(how(known)) if known else None
