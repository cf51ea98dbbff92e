"""What a network costs: operations, energy, and the paper's own account of both."""

from quadspike.analysis.energy.paper import compare_with_paper, paper_table
from quadspike.analysis.energy.report import EnergyCosts, EnergyReport, EnergyRow, Totals, energy
from quadspike.analysis.energy.table import beside_table, paper_tables, report_table

__all__ = [
    "EnergyCosts",
    "EnergyReport",
    "EnergyRow",
    "Totals",
    "beside_table",
    "compare_with_paper",
    "energy",
    "paper_table",
    "paper_tables",
    "report_table",
]
