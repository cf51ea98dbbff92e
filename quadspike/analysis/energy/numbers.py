"""An energy report as plain numbers, for a file."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from quadspike.analysis.energy.beside import BesidePaper
from quadspike.analysis.energy.report import EnergyReport, Totals
from quadspike.atomic import write_text

FORMAT = 1


def write_report(
    path: Path, report: EnergyReport, about: dict[str, Any], beside: BesidePaper | None
) -> None:
    """All numbers as JSON, after what they are `about`; `paper` is None where it has none."""
    paper = None if beside is None else beside.numbers()
    content = {"format": FORMAT, **about, **report_numbers(report), "paper": paper}
    write_text(path, json.dumps(content, indent=1) + "\n")


def report_numbers(report: EnergyReport) -> dict[str, Any]:
    """Every number of a report, ready for JSON; `exact` is None where rates were stated."""
    return {
        "timesteps": report.timesteps,
        "picojoule": asdict(report.costs),
        "rates": report.source,
        "firing_rate": report.firing_rate,
        "input_rate": report.input_rate,
        "neurons": report.neurons,
        "macs_per_step": report.macs_per_step,
        "acs_per_step": report.acs_per_step,
        "overhead_macs": report.overhead_macs,
        "estimate": _totals(report.estimate),
        "exact": None if report.exact is None else _totals(report.exact),
        "ann_mj": report.ann_mj,
        "uncounted": list(report.uncounted),
        "layers": [row._asdict() for row in report.rows],
    }


def _totals(totals: Totals) -> dict[str, float]:
    return {
        **totals._asdict(),
        "overhead_mj": totals.overhead_mj,
        "overhead_share": totals.overhead_share,
    }
