"""Energy reports as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import partial

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from quadspike.analysis.energy.beside import BesidePaper
from quadspike.analysis.energy.paper import Cell, PaperRow, Quantity, compare_with_paper
from quadspike.analysis.energy.report import FLAGS, EnergyReport, EnergyRow, Totals
from quadspike.written import millijoule, searchable

PJ_PER_UJ = 1e6
_MARKS = {"real": "r", "once": "1", "integer": "n", "graded": "g"}


def report_table(report: EnergyReport) -> Group:
    """The layers, the totals and what the marks mean."""
    used = [flag for flag in FLAGS if any(flag in row.flags for row in report.rows)]
    notes = [(_MARKS[flag], FLAGS[flag]) for flag in used]
    if report.uncounted:
        notes.append(("!", f"not counted: {', '.join(report.uncounted)}"))
    return Group(_layers(report), "", _totals(report), "", _footnotes(notes))


def paper_tables() -> Group:
    """The paper's energy table beside our counts, and why where they differ."""
    cells = compare_with_paper()
    notes = list(dict.fromkeys(cell.note for cell in cells if cell.note))
    marks = {note: chr(ord("a") + index) for index, note in enumerate(notes)}
    by_row: dict[PaperRow, dict[Quantity, Cell]] = {}
    for cell in cells:
        by_row.setdefault(cell.row, {})[cell.quantity] = cell
    operations, energies, overheads = {}, [], []
    for row, own in by_row.items():
        ours = partial(_ours, marks, own)
        # Printed once for several numbers of steps.
        operations[row.network, row.dataset] = (
            *(row.network, row.dataset),
            *(_scientific(row.macs), ours("macs", ",.0f")),
            *(_scientific(row.acs), ours("acs", ",.0f")),
        )
        place = row.network, row.dataset, str(row.timesteps)
        energy = str(row.energy_mj), ours("energy_mj", ".3f")
        energies.append((*place, ours("rate", ".3f"), *energy))
        overhead = str(row.overhead_mj), ours("overhead_mj", ".4f")
        share = str(row.overhead_percent), ours("overhead_percent", ".2f")
        overheads.append((*place, *overhead, *share))
    share_of = "What QIF adds to LIF, per inference and as a share of it"
    return Group(
        _paper_table("Operations per step", operations.values(), *_beside("MACs"), *_beside("ACs")),
        "",
        _paper_table(
            "Energy per inference, in mJ", energies, "T", "rate\nimplied", *_beside("energy")
        ),
        "",
        _paper_table(share_of, overheads, "T", *_beside("mJ"), *_beside("%")),
        "",
        Text(_verdict(cells), style="bold"),
        _footnotes([(mark, note) for note, mark in marks.items()]),
    )


def beside_table(beside: BesidePaper) -> Group:
    """A measured network next to what the paper prints for its setting."""
    row, report = beside.row, beside.report
    table = _table(f"The paper's account: {row.network}, {row.dataset}, T = {row.timesteps}")
    table.add_column("")
    for title in ("paper", "ours"):
        table.add_column(title, justify="right")
    kinds: tuple[Quantity, ...] = ("acs", "overhead_mj")
    noted = [kind for kind in kinds if kind in beside.notes]
    marks = dict.fromkeys(kinds, "") | dict(zip(noted, "ab", strict=False))
    lines = {
        "MACs per step": (_scientific(row.macs), f"{report.macs_per_step:,}"),
        f"ACs per step {marks['acs']}": (_scientific(row.acs), f"{report.acs_per_step:,}"),
        "mean rate, inputs": (
            f"{beside.implied_rate:.4f} (implied)",
            f"{report.input_rate:.4f}",
        ),
        "SNN": (f"{row.energy_mj} mJ", _mj(beside.energy_mj)),
        f"QIF over LIF {marks['overhead_mj']}": (
            f"{row.overhead_mj} mJ ({row.overhead_percent} %)",
            f"{_mj(beside.overhead_mj)} ({beside.overhead_percent:.2f} %)",
        ),
        "ANN with ReLU": ("not printed", _mj(report.ann_mj)),
    }
    for name, values in lines.items():
        table.add_row(name, *values)
    notes = _footnotes([(marks[kind], beside.notes[kind]) for kind in noted])
    return Group(table, "", Text(beside.sentence), notes)


def _verdict(cells: list[Cell]) -> str:
    """How many figures agree; the paper prints one count for several numbers of steps."""
    figures = {
        (cell.row.model, cell.row.geometry, cell.quantity, cell.computed): cell.agrees
        for cell in cells
        if cell.agrees is not None
    }
    agreeing, all_of_them = sum(map(bool, figures.values())), len(figures)
    return f"{agreeing} of the {all_of_them} figures checked agree; the notes explain the others."


def _layers(report: EnergyReport) -> Table:
    measured = report.source == "measured"
    table = _table(f"Operations per step, and energy per inference of {report.timesteps} steps")
    table.add_column("layer", overflow="fold")
    for title in ("kind", "operations"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("unit", no_wrap=True)
    largest = max((row.energy_pj for row in report.rows), default=0.0)
    unit, pj = ("µJ", PJ_PER_UJ) if largest >= PJ_PER_UJ else ("nJ", PJ_PER_UJ / 1000)
    for title in ("rate", unit, *[f"exact {unit}"] * measured):
        table.add_column(title, justify="right", no_wrap=True)
    for row in report.rows:
        table.add_row(*_layer(row, pj))
    return table


def _layer(row: EnergyRow, pj: float) -> list[str]:
    """One line, to fit 80 columns with the networks of the paper; energies in units of `pj`."""
    marks = "".join(_MARKS[flag] for flag in row.flags)
    parts = [
        row.layer.removesuffix(".synapse").removesuffix(".soma"),  # the kind says which
        f"{row.neurons:,} {row.kind}" if row.neurons else row.kind,
        f"{row.macs or row.acs:,}",
        f"{'AC' if row.acs else 'MAC'} {marks}",
        "" if row.rate is None else f"{row.rate:.4f}",
        _hundredths(row.energy_pj / pj),
    ]
    exact = row.exact_energy_pj
    return parts if exact is None else [*parts, _hundredths(exact / pj)]


def _totals(report: EnergyReport) -> Table:
    table = _table("Totals")
    table.add_column("")
    table.add_column(f"rate x count ({report.source} rates)", justify="right")
    columns = [report.estimate]
    if report.exact is not None:
        table.add_column("exact operations", justify="right")
        columns.append(report.exact)
    lines = {
        "this network": [_mj(totals.energy_mj) for totals in columns],
        "with QIF": [_mj(totals.qif_mj) for totals in columns],
        "with LIF": [_mj(totals.lif_mj) for totals in columns],
        "QIF over LIF": [_overhead(totals) for totals in columns],
        "QIF over LIF, MACs": [f"{report.overhead_macs:,}"],
        "ANN with ReLU": [_mj(report.ann_mj)],
        "MACs per step": [f"{report.macs_per_step:,}"],
        "ACs per step": [f"{report.acs_per_step:,}"],
        "neurons": [f"{report.neurons:,}"],
        "mean rate, inputs": [f"{report.input_rate:.4f}"],
    }
    if report.firing_rate is not None:
        lines["mean rate, neurons"] = [f"{report.firing_rate:.4f}"]
    for name, values in lines.items():
        table.add_row(name, *values)
    return table


def _beside(what: str) -> tuple[str, str]:
    return f"{what}\npaper", "\nours"


def _paper_table(title: str, rows: Iterable[Sequence[str | Text]], *columns: str) -> Table:
    table = _table(title)
    table.add_column("network", no_wrap=True)
    table.add_column("data")
    for heading in columns:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def _ours(
    marks: dict[str, str], cells: dict[Quantity, Cell], quantity: Quantity, spec: str
) -> Text:
    """Our value, whether it agrees, and the mark of its footnote."""
    cell = cells[quantity]
    verdict, style = {True: ("✓", "green"), False: ("✗", "red"), None: ("", "dim")}[cell.agrees]
    text = Text(f"{cell.computed:{spec}} ")
    text.append(verdict + marks.get(cell.note, " "), style=style)
    return text


def _table(title: str) -> Table:
    return Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )


def _footnotes(notes: list[tuple[str, str]]) -> RenderableType:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(style="dim")
    for mark, note in notes:
        grid.add_row(mark, note)
    return grid


def _scientific(value: Decimal) -> str:
    return f"{value:.2e}".replace("e+", "e")


def _hundredths(energy: float) -> str:
    return "<0.01" if 0 < energy < 0.01 else f"{energy:,.2f}"


def _mj(mj: float) -> str:
    return searchable(millijoule(mj, 4))


def _overhead(totals: Totals) -> str:
    return f"{_mj(totals.overhead_mj)} ({100 * totals.overhead_share:.2f} %)"
