"""What many runs would take, as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from quadspike.cli.display import duration
from quadspike.errors import QuadspikeError
from quadspike.training.distributed import Workers
from quadspike.training.plan import estimate
from quadspike.training.recipe import Recipe
from quadspike.training.record import device_name

Row = tuple[str, int, Callable[[], Recipe]]
"""A name, how many runs it stands for, and their recipe, which may be refused."""


def show_estimates(console: Console, kind: str, rows: Iterable[Row], place: torch.device) -> None:
    """A line for each row, timed on this device, and the sum."""
    table = Table(box=None, header_style="bold")
    for heading in (kind, "runs", "parameters", "steps", "time", "memory"):
        table.add_column(heading, justify="left" if heading == kind else "right")
    total = 0.0
    for name, runs, recipe in rows:
        try:
            found = estimate(recipe(), place, Workers())
        except QuadspikeError as error:
            table.add_row(name, str(runs), escape(f"refused: {error}"))
            continue
        total += runs * found.seconds
        table.add_row(
            name,
            str(runs),
            f"{found.parameters:,}",
            f"{runs * found.steps:,}",
            duration(runs * found.seconds),
            f"{found.memory_gib:.2f} GiB",
        )
    console.print(table)
    print(
        f"\nabout {duration(total)} of steps in all on {device_name(place)}, timed on random "
        "samples; evaluation comes on top"
    )
