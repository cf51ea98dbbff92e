"""A figure as a file."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from quadspike.analysis.figures.style import styled
from quadspike.atomic import write_atomic
from quadspike.errors import check_name

# No dates, so that the same figure is the same bytes.
FORMATS: dict[str, dict[str, Any]] = {
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
    "png": {},
}


def figure_format(path: Path) -> str:
    """What a file's ending says: png, svg or pdf.

    >>> figure_format(Path("curves.PNG"))
    'png'
    """
    return check_name("figure format", path.suffix.removeprefix(".").lower(), FORMATS)


@styled
def write_figure(figure: Figure, path: Path, dpi: float = 200) -> None:
    """Save it as what the file's ending says, whole or not at all."""
    ending = figure_format(path)
    drawn = io.BytesIO()
    figure.savefig(drawn, format=ending, metadata=FORMATS[ending], dpi=dpi)
    write_atomic(path, drawn.getvalue())
