"""The folder of a sweep: its runs, and which have come to their end."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from quadspike.atomic import write_text
from quadspike.errors import QuadspikeError
from quadspike.records.finished import read_finished
from quadspike.records.runs import RunRecord
from quadspike.training.folder import CommonFolder, RunFolder
from quadspike.training.recipe import Recipe

FORMAT = 1


@dataclass(frozen=True)
class State:
    """A run that is finished, that failed for a reason, or that is neither."""

    name: str
    record: RunRecord | None = None
    failure: str = ""

    @property
    def ended(self) -> bool:
        """Whether it is not run again."""
        return self.record is not None or bool(self.failure)


class SweepFolder(CommonFolder):
    """A folder a run; `sweep.json` lists all that was ever asked for, `NAME.json` has a failure."""

    @property
    def listing(self) -> Path:
        return self.path / "sweep.json"

    def failure(self, name: str) -> Path:
        """Where the failure of a run is noted; deleting it gives the run another try."""
        return self.path / f"{name}.json"

    def check(self, recipe: Recipe, resume: bool) -> None:
        """Refuse a folder that is no sweep's, or another's."""
        if self.recipe.exists() and not self.listing.exists():
            seen = {path.name for path in self.path.iterdir() if not path.name.startswith(".")}
            if seen != {self.recipe.name}:
                raise QuadspikeError(
                    f"{self.path} holds something else than a sweep; choose another --out"
                )
        super().check(recipe, resume)

    def names(self) -> list[str]:
        """Every run that was asked for."""
        try:
            content = json.loads(self.listing.read_text(encoding="utf-8"))
            version, names = content["format"], [str(name) for name in content["runs"]]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise QuadspikeError(f"{self.listing} is no list of a sweep's runs: {error}") from None
        if version != FORMAT:
            raise QuadspikeError(
                f"{self.listing} has format {version}, this version of quadspike reads {FORMAT}"
            )
        return names

    def recipes(self) -> dict[str, Recipe]:
        """Of every run that was begun, which may have been asked for by other fields."""
        found = {}
        for name in self._known():
            with suppress(QuadspikeError):  # not begun, or nothing to go by
                found[name] = RunFolder(self.path / name).read_recipe()
        return found

    def _known(self) -> list[str]:
        return self.names() if self.listing.exists() else []

    def extend(self, names: Iterable[str]) -> None:
        """Ask for these runs too."""
        runs = list(dict.fromkeys([*self._known(), *names]))
        write_text(self.listing, json.dumps({"format": FORMAT, "runs": runs}, indent=1) + "\n")

    def state(self, name: str) -> State:
        """How the run of that name stands."""
        note = self.failure(name)
        if not note.exists():
            return State(name, read_finished(self.path / name))
        try:
            return State(name, failure=str(json.loads(note.read_text(encoding="utf-8"))["failure"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise QuadspikeError(
                f"{note} is no note of a failure ({error}); delete it to run that again"
            ) from None

    def states(self) -> list[State]:
        """How every run stands that was asked for."""
        return [self.state(name) for name in self.names()]

    def fail(self, name: str, reason: str) -> None:
        """Note the failure of a run."""
        content = {"format": FORMAT, "failure": reason}
        write_text(self.failure(name), json.dumps(content, indent=1) + "\n")
