"""One self-contained page about a run, or about several side by side."""

from quadspike.report.page import write_report
from quadspike.report.runs import Run, read_run

__all__ = ["Run", "read_run", "write_report"]
