"""One self-contained page about a run, or about several side by side."""

from quadspike.analysis.report.page import write_report
from quadspike.analysis.report.runs import Run, read_run

__all__ = ["Run", "read_run", "write_report"]
