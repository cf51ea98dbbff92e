"""The console of every command."""

from __future__ import annotations

from rich.console import Console


def make_console(stderr: bool = False, width: int | None = None) -> Console:
    """One that prints what it is given: no colours for numbers, and `:100:` is no picture."""
    return Console(stderr=stderr, width=width, emoji=False, highlight=False)
