"""The console of every command."""

from __future__ import annotations

from rich.console import Console


def make_console(stderr: bool = False, at_least: int = 0) -> Console:
    """One that prints what it is given: no colours for numbers, and `:100:` is no picture.

    `at_least` so many columns wide: a narrower terminal folds the lines itself, where fitting a
    table into it would cut cells or leave columns out.
    """
    console = Console(stderr=stderr, emoji=False, highlight=False)
    if console.width < at_least:
        console.width = at_least
    return console
