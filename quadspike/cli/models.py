"""`quadspike models`."""

from __future__ import annotations

from rich.table import Table

from quadspike.cli.console import make_console


def models() -> None:
    """List the networks `create_model` knows."""
    from quadspike.models import describe_models

    table = Table("model", "what it is", box=None, header_style="bold")
    for name, summary in describe_models().items():
        table.add_row(name, summary)
    make_console().print(table)
