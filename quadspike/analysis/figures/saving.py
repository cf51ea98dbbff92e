"""A figure as a file."""

from __future__ import annotations

import io
from pathlib import Path

from matplotlib.figure import Figure

from quadspike.analysis.figures.gallery import FORMATS
from quadspike.analysis.figures.style import styled
from quadspike.atomic import write_atomic
from quadspike.errors import check_name


def figure_format(path: Path) -> str:
    """What a file's ending says: png, svg or pdf."""
    return check_name("figure format", path.suffix.removeprefix("."), FORMATS)


@styled
def write_figure(figure: Figure, path: Path) -> None:
    """Save it as what the file's ending says, whole or not at all."""
    ending = figure_format(path)
    drawn = io.BytesIO()
    figure.savefig(drawn, format=ending, metadata=FORMATS[ending], dpi=200)
    write_atomic(path, drawn.getvalue())
