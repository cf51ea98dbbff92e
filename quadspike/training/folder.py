"""The folder of a run: which files it holds, and whose it is."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quadspike.atomic import check_folder, lock, write_text
from quadspike.errors import QuadspikeError, QuadspikeWarning, WriteError
from quadspike.training.field_values import OWN
from quadspike.training.recipe import Recipe

FORMAT = 1
LOCK = ".lock"
GIVEN = "the data were given to train, not loaded by the name in the recipe"
"""What is noted of such a run when it starts."""


def check_one_run(path: Path) -> None:
    """Refuse a folder that is none of a run and holds several, such as a sweep's."""
    found = [*path.glob("*/recipe.json"), *path.glob("*/*/recipe.json")]
    if inside := sorted(recipe.parent for recipe in found):
        raise QuadspikeError(
            f"{path} is no run, it holds {len(inside)}; give their folders, such as {inside[0]}"
        )


@dataclass(frozen=True)
class RunFolder:
    """`recipe.json`, `metrics.jsonl`, `checkpoint.safetensors`; at the end `record.json`,
    `last.safetensors` and `best.safetensors`.
    """

    path: Path

    @property
    def recipe(self) -> Path:
        return self.path / "recipe.json"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def checkpoint(self) -> Path:
        return self.path / "checkpoint.safetensors"

    @property
    def record(self) -> Path:
        return self.path / "record.json"

    def weights(self, which: str) -> Path:
        """The file of the `last` or the `best` weights."""
        return self.path / f"{which}.safetensors"

    def ended_weights(self, which: str = "last", instead: str = "") -> Path:
        """The same file, refused where it is not there; `instead` ends the sentence."""
        path = self.weights(which)
        if path.exists():
            return path
        check_one_run(self.path)
        why = " yet: the run was not ended; finish it with --resume"
        if self.record.exists() and not self.weights("last").exists():
            why = ": the run has ended, without its weights here; give the folder it trained in"
        raise QuadspikeError(f"{self.path} has no {path.name}{why}{instead}")

    def check_loaded(self, instead: str) -> None:
        """Refuse to load by its name what the run was not trained on; `instead` says what to do."""
        if self._start().get("data") == GIVEN:
            raise QuadspikeError(f"{self.path}: {GIVEN}; {instead}")

    @property
    def begun(self) -> bool:
        """Whether a run here has got anywhere; one that failed at its start can be taken over."""
        return any(map(os.path.exists, (self.checkpoint, self.metrics, self.record)))

    def check(self, recipe: Recipe, resume: bool) -> None:
        """Refuse a folder that is not this run's, before any work."""
        if os.path.isfile(self.path):
            raise QuadspikeError(f"{self.path} is a file; --out takes a folder")
        check_folder(self.path)
        if os.path.exists(self.recipe):
            if self.begun:
                self._check_owner(recipe, resume)
        elif os.path.exists(self.path) and any(
            not p.name.startswith(".") for p in self.path.iterdir()
        ):
            raise QuadspikeError(
                f"{self.path} holds files that are no run of quadspike; choose another --out"
            )

    def _check_owner(self, recipe: Recipe, resume: bool) -> None:
        theirs = self.read_recipe()
        if not resume:
            raise QuadspikeError(
                f"{self.path} already holds a run of {theirs.name!r}; go on with it by --resume "
                "(resume=True in Python), or choose another --out"
            )
        changed = theirs.differences(recipe)
        if changed:
            listed = ", ".join(f"{k} {old!r} -> {new!r}" for k, (old, new) in changed.items())
            raise QuadspikeError(
                f"{self.path} holds another run, whose recipe differs: {listed}; resume with the "
                "same recipe, or choose another --out"
            )

    def read_recipe(self) -> Recipe:
        """The recipe the run was started with."""
        recipe: Recipe = self._start()["recipe"]
        return recipe

    def read_packaged(self, instead: str) -> Recipe:
        """The recipe, if its network can be made from it; `instead` says what else to do."""
        recipe = self.read_recipe()
        if recipe.model == OWN:
            raise QuadspikeError(f"{self.path} holds a run of your own network; {instead}")
        return recipe

    def first_weights(self, given: str | Path | None, resume: bool) -> Path | None:
        """The file the run's weights came from at its start, also where a resume leaves it out."""
        wanted = None if given is None else Path(given)
        if not (resume and os.path.exists(self.recipe)):
            return wanted
        source = self._start().get("init_from")
        known = Path(source) if source else None
        if wanted not in (None, known):
            raise QuadspikeError(
                f"{self.path} holds a run that started from {known or 'new weights'}, not from "
                f"{wanted}; resume without --init-from, or choose another --out"
            )
        return known

    def check_first_weights(self, source: Path) -> None:
        """Refuse weights that are others by now than when the run began, where that was noted."""
        noted = self._start().get("init_from_sha256")
        file = weights_file(source)
        if noted is not None and file.is_file() and sha256(file) != noted:
            raise QuadspikeError(
                f"{self.path} began with other weights than {file} holds now; put back the file "
                f"with the SHA-256 {noted}"
            )

    def _start(self) -> dict[str, Any]:
        """What was written when the run began, its recipe as one."""
        try:
            content = json.loads(self.recipe.read_text(encoding="utf-8"))
            if not isinstance(content, dict) or not {"format", "recipe"} <= content.keys():
                raise ValueError("it holds no recipe")
            if content["format"] != FORMAT:
                raise QuadspikeError(
                    f"{self.recipe} has format {content['format']}, this version of quadspike "
                    f"reads format {FORMAT}; use the version that wrote it"
                )
            return {**content, "recipe": Recipe.from_dict(content["recipe"])}
        except OSError as error:
            raise QuadspikeError(
                f"{self.path} is no run: cannot read {self.recipe.name}: {error.strerror}"
            ) from None
        except QuadspikeError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise QuadspikeError(
                f"{self.recipe} is damaged: {error}; put it back, or begin in another folder"
            ) from None

    @contextmanager
    def opened(
        self,
        recipe: Recipe,
        resume: bool = False,
        init_from: Path | None = None,
        fingerprint: str | None = None,
        given: bool = False,
    ) -> Iterator[Callable[[], None]]:
        """Ours alone for as long as the run lasts; a kill gives it back by itself.

        `fingerprint` is that of the weights just read from `init_from`; a run that goes on has
        none. `given` says that its data were, too. What it gives is to be called before anything
        is written: a folder that was moved or removed meanwhile is made anew, unless it is another
        run's by now.
        """
        held = self._lock()
        try:
            self.check(recipe, resume)  # again: another run may have been here since
            if self.checkpoint.exists():
                content = json.loads(self.recipe.read_text(encoding="utf-8"))
            else:
                content = {"format": FORMAT, "recipe": recipe.as_dict()}
                if init_from is not None:
                    content["init_from"] = str(init_from)
                    content["init_from_sha256"] = fingerprint
            if given:
                content["data"] = GIVEN
            start = json.dumps(content, indent=2) + "\n"
            write_text(self.recipe, start)

            def keep() -> None:
                nonlocal held
                if self._is_lock(held):
                    return
                try:
                    before, held = held, self._lock()
                    os.close(before)
                    if os.path.exists(self.recipe):  # else what lies here may be a run of ours
                        self.check(recipe, resume=True)
                except QuadspikeError as error:
                    raise WriteError(
                        f"{self.path} was moved or removed while this run trained in it: {error}"
                    ) from None
                write_text(self.recipe, start)

            yield keep
        finally:
            os.close(held)

    def _lock(self) -> int:
        """The folder's lock in our hands; the folder is made."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            held = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise WriteError(f"cannot write to {self.path}: {error.strerror}") from None
        taken = f"another process is training in {self.path}; wait, or choose another --out"
        try:
            if not lock(held, taken):
                warnings.warn(
                    f"{self.path} lies where files cannot be locked: see to it that no other "
                    "process trains in it",
                    QuadspikeWarning,
                    stacklevel=4,
                )
        except QuadspikeError:
            os.close(held)
            raise
        return held

    def _is_lock(self, held: int) -> bool:
        """Whether that is the lock of the folder that lies here now."""
        try:
            return os.path.samestat(os.fstat(held), os.stat(self.path / LOCK))
        except OSError:
            return False

    def goes_on(self, resume: bool) -> bool:
        """Whether a run goes on from a checkpoint; an ended one that has lost it is refused."""
        if not resume:
            return False
        if self.record.exists() and not self.checkpoint.exists():
            raise QuadspikeError(
                f"{self.path} holds a run that has ended, and its {self.checkpoint.name} is gone, "
                f"so that it cannot go on; choose another --out, or delete {self.record} to begin "
                "anew"
            )
        return self.checkpoint.exists()

    def forget_end(self, going_on: bool) -> None:
        """Take away what an earlier end has left: it would speak of other weights.

        A run that begins anew also takes away the epochs of the one that was here.
        """
        ended = (self.record, self.weights("last"), self.weights("best"))
        for path in ended if going_on else (*ended, self.metrics):
            path.unlink(missing_ok=True)

    def write_metrics(self, history: list[dict[str, Any]]) -> None:
        """One line an epoch; rewritten whole, so that it always agrees with the run.

        Not flushed: the checkpoint and the record hold the same lines, and a short epoch would
        wait for the disk.
        """
        write_text(self.metrics, "".join(json.dumps(line) + "\n" for line in history), flush=False)


class CommonFolder(RunFolder):
    """The folder of several runs: `recipe.json` is what they have in common.

    From the moment that is written the folder is of that recipe, and refuses any other.
    """

    @property
    def begun(self) -> bool:
        return self.recipe.exists()


def weights_file(source: Path) -> Path:
    """Of a run's folder the last weights, else the file itself."""
    return RunFolder(source).weights("last") if source.is_dir() else source


def sha256(path: Path) -> str:
    """The fingerprint of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
