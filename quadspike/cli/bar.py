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
    bar = Bar("{task.description}", *columns, console=make_console(stderr=True))
    task = bar.add_task(title)

    def tell(done: int, total: int) -> None:
        bar.start()  # now that there is anything to tell
        bar.update(task, completed=done, total=total)

    try:
        yield tell
    finally:
        if bar.live.is_started:  # one that never began would leave an empty line in a log
            bar.stop()


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
