"""`quadspike recipes`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from quadspike.cli.console import make_console
from quadspike.written import with_spread

if TYPE_CHECKING:
    from quadspike.recipes import Entry


def recipes() -> None:
    """List the settings to train from, and what the paper reports for them."""
    from quadspike.recipes import RECIPES

    table = Table(box=None, header_style="bold")
    table.add_column("recipe", no_wrap=True)
    table.add_column("epochs", justify="right", no_wrap=True)
    table.add_column("T", justify="right", no_wrap=True)
    table.add_column("what it is, and the paper's accuracy")
    for name, entry in RECIPES.items():
        recipe = entry.make()
        steps = str(recipe.timesteps)
        table.add_row(name, str(recipe.epochs), steps, "\n".join([entry.summary, *_figures(entry)]))
    make_console().print(table)


def _figures(entry: Entry) -> list[str]:
    """One line each, in percent: `tet T 4  96.86 ± 0.13`."""
    return [
        f"{loss:<3} T {timesteps:<2} {with_spread(*figure)}"
        for (timesteps, loss), figure in entry.figures.items()
    ]
