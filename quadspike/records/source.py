"""The code that a record was made with, in the history of the repository."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from quadspike.errors import QuadspikeError
from quadspike.training.record import fingerprint

PACKAGE = "quadspike"


@dataclass(frozen=True)
class Repository:
    """The git repository around `path`."""

    path: Path

    def has(self, commit: str) -> bool:
        """Whether a commit is in the history up to HEAD, and so in every clone of it."""
        return _git(self.path, "merge-base", "--is-ancestor", commit, "HEAD").returncode == 0

    def fingerprint(self, commit: str) -> str:
        """What `source_fingerprint` says where just that commit is checked out."""
        return _fingerprint(self.path, commit)

    def find(self, source: str) -> str | None:
        """The newest commit up to HEAD whose package has the fingerprint `source`."""
        listed = _git(self.path, "rev-list", "HEAD", "--full-history", "--", PACKAGE)
        commits = listed.stdout.decode().split()
        return next((c for c in commits if self.fingerprint(c) == source), None)


def prove(environment: Mapping[str, Any], commit: str, repository: Repository) -> None:
    """Refuse a record unless `commit` holds just the code that made it."""
    noted, source = _unchanged(environment, repository), environment.get("source")
    if not source:
        raise QuadspikeError("it has no fingerprint of the source it was made with")
    if noted not in (None, commit):
        raise QuadspikeError(f"the run noted commit {noted}, the record says {commit}")
    if not repository.has(commit):
        raise QuadspikeError(
            f"commit {commit[:10]} is not in this repository; fetch all of its history"
        )
    found = repository.fingerprint(commit)
    if found != source:
        raise QuadspikeError(
            f"the source at commit {commit[:10]} has the fingerprint {found[:10]}..., it was made "
            f"with {source[:10]}..."
        )


def find_commit(environment: Mapping[str, Any], repository: Repository) -> str:
    """The commit of the code that made something, by what it noted or by its fingerprint."""
    source = str(environment.get("source"))
    found = _unchanged(environment, repository) or repository.find(source)
    if found is None:
        noted, where = environment.get("commit"), "where git was not at hand"
        if noted:
            on = "at" if environment.get("clean") else "with changes on top of"
            where = f"{on} commit {noted[:10]}"
            where += "" if repository.has(noted) else ", which is not in the history up to HEAD"
        raise QuadspikeError(
            f"it was made {where}, and no commit up to HEAD has its source; commit that source, or "
            "check out a branch that has it"
        )
    return found


def _unchanged(environment: Mapping[str, Any], repository: Repository) -> str | None:
    """The commit that was checked out, if nothing was changed on top of it, nor it since."""
    noted = environment.get("commit") if environment.get("clean") is True else None
    return noted if noted and repository.has(noted) else None


@cache
def _fingerprint(path: Path, commit: str) -> str:
    packed = _git(path, "archive", "--format=tar", f"{commit}:{PACKAGE}")
    if packed.returncode:
        return ""  # a commit without the package
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        return fingerprint(
            {
                member.name: content.read()
                for member in archive
                if member.name.endswith(".py") and (content := archive.extractfile(member))
            }
        )


@cache
def _top(path: Path) -> str:
    found = _run("-C", str(path), "rev-parse", "--show-toplevel")
    if found.returncode:
        raise QuadspikeError(
            f"{path} is in no git repository; records are checked against the history of the code"
        )
    return found.stdout.decode().strip()


def _git(path: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """From the top: `git archive` would take only what is below the folder it runs in."""
    return _run("-C", _top(path), *arguments)


def _run(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(["git", *arguments], capture_output=True)
    except OSError as error:
        raise QuadspikeError(f"cannot run git: {error.strerror}; install it") from None
