"""Mappings of the same keys as a table in JSON, where each key is written once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

Names = Sequence[Any]
"""Of columns: a text, or for a mapping in each row a list of its own name and those inside."""


def as_table(rows: Sequence[Mapping[str, Any]]) -> list[Any]:
    """The names, then the values of each row; a row ends where it has no more of them.

    Rows that do not fit in one table stay as they are.

    >>> as_table([{"epoch": 1, "rates": {"a": 0.5, "b": 0.25}}, {"epoch": 2}])
    [['epoch', ['rates', 'a', 'b']], [1, [0.5, 0.25]], [2]]
    """
    names = _names(rows)
    table = [names, *(_cells(names, row) for row in rows)]
    return table if rows and from_table(table) == rows else [*rows]


def from_table(table: Sequence[Any]) -> list[Any]:
    """The rows of `as_table`, and of whatever is no table just that.

    >>> from_table([["epoch", ["rates", "a", "b"]], [1, [0.5, 0.25]], [2]])
    [{'epoch': 1, 'rates': {'a': 0.5, 'b': 0.25}}, {'epoch': 2}]
    """
    if table and isinstance(table[0], list):
        return [_row(table[0], cells) for cells in table[1:]]
    return [*table]


def _names(rows: Sequence[Mapping[str, Any]]) -> list[Any]:
    """What most rows have comes first."""
    found = []
    for key, count in Counter(key for row in rows for key in row).most_common():
        inside = [row[key] for row in rows if isinstance(row.get(key), Mapping)]
        found.append([key, *_names(inside)] if len(inside) == count else key)
    return found


def _parted(name: Any) -> tuple[str, Names]:
    """The key, and the names inside."""
    return (name, ()) if isinstance(name, str) else (name[0], name[1:])


def _cells(names: Names, row: Mapping[str, Any]) -> list[Any]:
    found: list[Any] = []
    for key, inside in map(_parted, names):
        if key not in row:
            break
        found.append(_cells(inside, row[key]) if inside else row[key])
    return found


def _row(names: Names, cells: Sequence[Any]) -> dict[str, Any]:
    pairs = zip(map(_parted, names), cells, strict=False)
    return {key: _row(inside, cell) if inside else cell for (key, inside), cell in pairs}
