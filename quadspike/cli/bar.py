"""Bars in the terminal for work that tells how far it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.progress import (
    Progress as Bar,
)

from quadspike.cli.console import make_console
from quadspike.data.progress import Progress


@contextmanager
def progress_bar(title: str, of_bytes: bool = False) -> Iterator[Progress]:
    """A bar in the terminal, on standard error, for work that takes a `progress`."""
    amount: tuple[ProgressColumn, ...] = (MofNCompleteColumn(),)
    if of_bytes:
        amount = (DownloadColumn(), TransferSpeedColumn())
    columns = (BarColumn(), *amount, TimeRemainingColumn())
    with Bar("{task.description}", *columns, console=make_console(stderr=True)) as bar:
        task = bar.add_task(title, visible=False)  # until there is anything to tell
        yield lambda done, total: bar.update(task, completed=done, total=total, visible=True)


def described_bars(console: Console) -> Bar:
    """Bars with words on either side, on a terminal alone, that are gone once they stop."""
    return Bar(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=None),
        TextColumn("{task.fields[text]}", markup=False),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
