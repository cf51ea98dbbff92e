"""What many runs would take, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from rich.markup import escape
from rich.table import Table

from quadspike.cli.console import make_console
from quadspike.cli.display import duration
from quadspike.errors import QuadspikeError
from quadspike.training.distributed import Workers
from quadspike.training.plan import estimate
from quadspike.training.queue import Job
from quadspike.training.record import device_name

Named = tuple[str, Job[Any]]
"""A run, and what those that are alike but for their seed are called."""


def show_estimates(kind: str, jobs: Sequence[Named], place: torch.device) -> None:
    """A line for each name that has runs left, timed on this device, and the sum."""
    left: dict[str, list[Job[Any]]] = {}
    for name, job in jobs:
        if job.outcome() is None:
            left.setdefault(name, []).append(job)
    table = Table(box=None, header_style="bold")
    for heading in (kind, "runs", "parameters", "steps", "time", "memory"):
        table.add_column(heading, justify="left" if heading == kind else "right")
    total = 0.0
    for name, those in left.items():
        runs = len(those)
        try:
            found = estimate(those[0].recipe, place, Workers())
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
    make_console().print(table)
    print(
        f"\nabout {duration(total)} of steps in all on {device_name(place)}, timed on random "
        "samples; evaluation comes on top"
    )
    ended = len(jobs) - sum(map(len, left.values()))
    if ended:
        print(f"{ended} of {len(jobs)} runs have come to their end")
