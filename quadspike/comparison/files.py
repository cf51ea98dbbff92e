"""What a comparison leaves: the record, the table in three forms, a picture."""

from __future__ import annotations

import json

from quadspike.analysis.figures.saving import write_figure
from quadspike.atomic import write_text
from quadspike.comparison.grid import grid
from quadspike.comparison.outcome import FORMAT
from quadspike.comparison.picture import accuracy_against_energy
from quadspike.comparison.rows import Comparison
from quadspike.comparison.tables import comma_separated, latex, markdown
from quadspike.training.folder import RunFolder


def write_files(comparison: Comparison, folder: RunFolder) -> None:
    """`comparison.json`, `table.md`, `table.csv`, `table.tex`, `accuracy_energy.png` and `.svg`."""
    text = json.dumps({"format": FORMAT, **comparison.as_dict()}, indent=1)
    write_text(folder.record, text + "\n")
    table = grid(comparison)
    for name, content in {
        "table.md": markdown(table),
        "table.csv": comma_separated(comparison),
        "table.tex": latex(table),
    }.items():
        write_text(folder.path / name, content)
    figure = accuracy_against_energy(comparison)
    for ending in ("png", "svg"):
        write_figure(figure, folder.path / f"accuracy_energy.{ending}")
