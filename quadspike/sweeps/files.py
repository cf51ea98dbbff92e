"""What a sweep leaves beside its runs: their table and their learning curves."""

from __future__ import annotations

from collections.abc import Sequence

from quadspike.analysis.figures.saving import write_figure
from quadspike.atomic import write_text
from quadspike.records.group_table import group_table
from quadspike.records.picture import draw
from quadspike.records.series import curves
from quadspike.sweeps.folder import State, SweepFolder


def write_files(folder: SweepFolder) -> str:
    """`table.md`, and `curves.png` once a run is finished, as the runs stand now; the table."""
    states = folder.states()
    text = _table(states)
    write_text(folder.path / "table.md", text)
    records = [state.record for state in states if state.record is not None]
    if records:
        write_figure(draw(curves(records)), folder.path / "curves.png")
    return text


def _table(states: Sequence[State]) -> str:
    """Markdown: the table that records of the finished runs would have, then what is not in it."""
    records = [state.record for state in states if state.record is not None]
    failed = [f"- `{state.name}` failed: {state.failure}\n" for state in states if state.failure]
    unfinished = [f"`{state.name}`" for state in states if not state.ended]
    parts = [group_table(records)] if records else []
    if failed:
        parts.append("".join(failed))
    if unfinished:
        parts.append(f"Not finished: {', '.join(unfinished)}.\n")
    return "\n".join(parts)
