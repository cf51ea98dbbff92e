"""Bars in the terminal for work that tells how far it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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


_BAR = 10
"""Columns that a bar keeps beside its words."""


def beside_bar(width: int, description: str, told: Sequence[str], always: str = "") -> str:
    """What is `told` as far as it fits, the last given up first, and what is `always` there.

    >>> told = ["loss 1.1497", "train 77.91%", "6,811 images/s"]
    >>> beside_bar(60, "epoch 1/3 step 12/22", told, "0.8 s left")
    'loss 1.1497  0.8 s left'
    """
    room = width - len(description) - _BAR - 2  # and a space on either side of the bar
    shown = [*told, *[always] * bool(always)]
    more = len(told)
    while more and len("  ".join(shown)) > room:
        more -= 1
        del shown[more]
    return "  ".join(shown)
