"""Every record checked, one verdict each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from quadspike.errors import QuadspikeError
from quadspike.records.comparisons import check_comparison
from quadspike.records.runs import check_run, read_record
from quadspike.records.source import Repository
from quadspike.records.store import Kind, Store


@dataclass(frozen=True)
class Verdict:
    """`problem` is empty where the record holds; `line` then says what it claims."""

    kind: Kind
    name: str
    line: str = ""
    problem: str = ""


def verify(store: Store) -> Iterator[Verdict]:
    """Recompute every record and check it against the history of the repository around it."""
    store.check()
    repository = Repository(store.root)
    kinds: tuple[Kind, ...] = ("runs", "compare")
    for kind in kinds:
        for name in store.names(kind):
            try:
                yield Verdict(kind, name, _check(kind, name, store, repository))
            except QuadspikeError as error:
                yield Verdict(kind, name, problem=str(error))


def _check(kind: Kind, name: str, store: Store, repository: Repository) -> str:
    files = store.read(kind, name)
    if kind == "compare":
        found = check_comparison(files, repository)
        return f"{len(found.rows)} methods, {len(found.outcomes)} runs of {found.recipe.name}"
    record = read_record(name, files)
    check_run(record, repository)
    said, commit = record.summary, record.content["commit"]
    return (
        f"{said['accuracy']:.2%} ({said['accuracy_of']}), best {said['best_test_accuracy']:.2%} "
        f"at epoch {said['best_epoch']} of {said['epochs']}, commit {commit[:10]}"
    )
