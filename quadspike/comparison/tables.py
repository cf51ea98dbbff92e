"""The table of a comparison in Markdown, CSV and LaTeX."""

from __future__ import annotations

import csv
import io

from quadspike.comparison.grid import Grid
from quadspike.comparison.rows import Comparison, Row
from quadspike.markdown import markdown_table

_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "—": "---",
    "±": r"$\pm$",
    "µ": r"$\mu$",
}


def markdown(grid: Grid) -> str:
    """A heading, the table, its notes."""
    table = markdown_table(grid.headings, "l" + "r" * (len(grid.headings) - 1), grid.rows)
    notes = "\n".join(f"- ({mark}) {text}" for mark, text in grid.notes)
    parts = [f"## {grid.title}", table, *grid.remarks, *[notes] * bool(notes)]
    return "\n\n".join(parts) + "\n"


def latex(grid: Grid) -> str:
    """A table for booktabs and graphicx, its caption and notes included."""
    columns = "l" + "r" * (len(grid.headings) - 1)
    notes = [f"({mark}) {text.rstrip('.')}." for mark, text in grid.notes]
    below = " ".join(map(escape, (*grid.remarks, *notes)))
    lines = [
        r"\begin{table*}",
        r"\centering",
        rf"\caption{{{escape(grid.title)}.}}",
        r"\resizebox{\linewidth}{!}{%",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        _line(grid.headings),
        r"\midrule",
        *map(_line, grid.rows),
        r"\bottomrule",
        r"\end{tabular}}",
        r"\par\smallskip",
        rf"{{\footnotesize {below}\par}}",
        r"\end{table*}",
    ]
    return "\n".join(lines) + "\n"


def _line(cells: tuple[str, ...]) -> str:
    return rf"{' & '.join(map(escape, cells))} \\"


def escape(text: str) -> str:
    r"""As LaTeX prints it.

    >>> print(escape("50 % ± 1_a"))
    50 \% $\pm$ 1\_a
    """
    return "".join(_LATEX.get(character, character) for character in text)


def comma_separated(comparison: Comparison) -> str:
    """Every number as it is, for a spreadsheet."""
    lines = [_record(row, comparison) for row in comparison.rows]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()


def _record(row: Row, comparison: Comparison) -> dict[str, object]:
    method, cell = row.method, row.cell
    figure = None if cell is None else cell.figure
    return {
        "method": method.key,
        "title": method.title,
        "kind": method.kind,
        "status": method.status,
        "neuron": method.neuron,
        "norm": method.norm,
        "surrogate": method.surrogate,
        "loss": method.loss,
        "aid": method.aid,
        "seeds": comparison.seeds,
        "runs": row.runs,
        "failures": "; ".join(row.failures),
        "accuracy_percent": row.accuracy,
        "accuracy_spread": row.spread,
        "step_ms": row.step_ms,
        "memory_gib": row.memory_gib,
        "firing_rate": row.firing_rate,
        "energy_mj": row.energy_mj,
        "energy_note": method.energy_note,
        "parameters": row.parameters,
        "spikes": method.spikes,
        "paper_dataset": figure and figure.dataset,
        "paper_network": figure and figure.network,
        "paper_timesteps": figure and figure.timesteps,
        "paper_accuracy_percent": figure and figure.accuracy,
        "paper_spread": figure and figure.spread,
        "like_for_like": cell and cell.verdict,
        "why": "" if cell is None else "; ".join(cell.reasons),
    }
