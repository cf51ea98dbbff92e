"""`quadspike report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg


def report(
    runs: Positional[Annotated[tuple[Path, ...], arg(metavar="RUN")]],
    out: Annotated[Path, arg(aliases=["-o"], metavar="FILE")] = Path("report.html"),
) -> None:
    """Write one self-contained page about a run, or about several side by side.

    For example:
      quadspike report runs/digits
      quadspike report runs/qif runs/lif -o comparison.html

    Args:
        runs: Folders that training wrote, finished or under way, or record files.
        out: The page to write, in HTML.
    """
    from quadspike.errors import QuadspikeError
    from quadspike.report import write_report

    if out.suffix.lower() not in (".html", ".htm"):
        raise QuadspikeError(f"a report is a page in HTML, got {out}; give a name with .html")
    print(write_report(runs, out))
