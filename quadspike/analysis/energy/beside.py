"""A measured network beside the row of the paper's table that has its setting."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quadspike.analysis.energy.paper import (
    PaperRow,
    Quantity,
    count_network,
    paper_table,
    printed_cells,
)
from quadspike.analysis.energy.report import COSTS_45NM, PJ_PER_MJ, EnergyReport
from quadspike.atomic import write_text

FORMAT = 1
"""Of the file of `write_report`."""


@dataclass(frozen=True)
class BesidePaper:
    """`report`, billed as the paper bills: `T (fr E_AC ACs + E_MAC MACs)`, the stem at every step.

    Only the firing rate is measured; the rest is counted.
    """

    row: PaperRow
    report: EnergyReport
    implied_rate: float
    """The rate at which the formula gives the printed energy."""
    notes: dict[Quantity, str]
    """Why printed figures are not those of the paper's own rules."""

    @classmethod
    def of(cls, report: EnergyReport, model: str, dataset: str) -> BesidePaper | None:
        """None where the paper has no such network, or operations cost other than there."""
        setting = (model, dataset, report.timesteps)
        rows = [r for r in paper_table() if (r.model, r.geometry, r.timesteps) == setting]
        if not rows or report.costs != COSTS_45NM:
            return None
        theirs = count_network(model, dataset)
        if (report.neurons, report.acs_per_step) != (theirs.neurons, theirs.acs_per_step):
            return None
        cells = {cell.quantity: cell for cell in printed_cells(rows[0])}
        notes = {kind: cell.note for kind, cell in cells.items() if cell.agrees is False}
        return cls(rows[0], report, cells["rate"].computed, notes)

    @property
    def energy_mj(self) -> float:
        """By the paper's formula, on the measured rate."""
        report, costs = self.report, COSTS_45NM
        accumulates = report.input_rate * report.acs_per_step
        per_step = costs.ac * accumulates + costs.mac * report.macs_per_step
        return report.timesteps * per_step / PJ_PER_MJ

    @property
    def overhead_mj(self) -> float:
        """One more MAC per neuron and step."""
        return self.report.overhead_macs * COSTS_45NM.mac / PJ_PER_MJ

    @property
    def overhead_percent(self) -> float:
        """Of the energy with QIF, whatever the neurons are."""
        totals = self.report.estimate
        return 100 * self.overhead_mj / (self.energy_mj + totals.qif_mj - totals.energy_mj)

    @property
    def sentence(self) -> str:
        """What differs, and by how much."""
        ours, printed = self.report.input_rate, float(self.row.energy_mj)
        kinds = sorted({row.kind for row in self.report.rows if row.neurons} - {"qif"})
        other = f" The paper's neurons are QIF, these {', '.join(kinds)}." if kinds else ""
        return (
            f"Measured, an input fires {ours:.4f} times a step, weighted by the synapses it "
            f"drives; the printed energy implies {self.implied_rate:.4f}. At "
            f"{ours / self.implied_rate:.2f} times that rate the same formula gives "
            f"{self.energy_mj / printed:.2f} times the printed energy.{other}"
        )

    def numbers(self) -> dict[str, Any]:
        """Ours and the printed figures, ready for JSON."""
        row = self.row
        return {
            "ours": {
                "macs": self.report.macs_per_step,
                "acs": self.report.acs_per_step,
                "rate": self.report.input_rate,
                "energy_mj": self.energy_mj,
                "overhead_mj": self.overhead_mj,
                "overhead_percent": self.overhead_percent,
            },
            "printed": {
                "macs": float(row.macs),
                "acs": float(row.acs),
                "rate": None,
                "energy_mj": float(row.energy_mj),
                "overhead_mj": float(row.overhead_mj),
                "overhead_percent": float(row.overhead_percent),
            },
            "implied_rate": self.implied_rate,
        }


def write_report(
    path: Path, report: EnergyReport, about: dict[str, Any], beside: BesidePaper | None
) -> None:
    """All numbers as JSON, after what they are `about`; `paper` is None where it has none."""
    paper = None if beside is None else beside.numbers()
    content = {"format": FORMAT, **about, **report.numbers(), "paper": paper}
    write_text(path, json.dumps(content, indent=1) + "\n")
