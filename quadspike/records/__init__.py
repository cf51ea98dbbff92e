"""Records: what a run or a comparison came to, small enough to keep and checked by anyone."""

from quadspike.records.add import record_run
from quadspike.records.agreement import AGREEMENT, by_agreement
from quadspike.records.comparisons import record_comparison
from quadspike.records.fastest import not_listed
from quadspike.records.groups import read_groups, ungrouped
from quadspike.records.overview import accuracy_against_time
from quadspike.records.picture import draw
from quadspike.records.series import Plot, Series, against, curves
from quadspike.records.source import Repository
from quadspike.records.store import Store
from quadspike.records.tables import fill_page, filled, table
from quadspike.records.verdicts import Verdict, verify
from quadspike.records.weights import evaluate_export, export, load_export

__all__ = [
    "AGREEMENT",
    "Plot",
    "Repository",
    "Series",
    "Store",
    "Verdict",
    "accuracy_against_time",
    "against",
    "by_agreement",
    "curves",
    "draw",
    "evaluate_export",
    "export",
    "fill_page",
    "filled",
    "load_export",
    "not_listed",
    "read_groups",
    "record_comparison",
    "record_run",
    "table",
    "ungrouped",
    "verify",
]
