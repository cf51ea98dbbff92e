"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def markdown_table(
    headings: Sequence[str], align: str, rows: Iterable[Sequence[str]], padded: bool = False
) -> str:
    r"""`align` has an l or an r a column; padded, a terminal shows it as a table too.

    >>> print(markdown_table(["layer", "rate"], "lr", [["a|b", "0.5"]]))
    | layer | rate |
    | --- | ---: |
    | a\|b | 0.5 |
    >>> print(markdown_table(["layer", "rate"], "lr", [["conv", "0.5"]], padded=True))
    | layer | rate |
    | ----- | ---: |
    | conv  |  0.5 |
    """
    lines = [map(_in_cell, line) for line in (headings, *rows)]
    cells = zip(*lines, strict=True)
    columns = [_column(side, *each, padded=padded) for side, each in zip(align, cells, strict=True)]
    return "\n".join(f"| {' | '.join(line)} |" for line in zip(*columns, strict=True))


def _column(side: str, heading: str, *cells: str, padded: bool) -> list[str]:
    width = max(map(len, (heading, *cells))) if padded else 0
    rule = "-" * (width or 3) if side == "l" else "-" * ((width or 4) - 1) + ":"
    placed = str.ljust if side == "l" else str.rjust
    return [placed(cell, width) for cell in (heading, rule, *cells)]


def _in_cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
