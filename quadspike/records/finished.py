"""A finished run as its record would read, with no history of the code to check it against."""

from __future__ import annotations

import json
from pathlib import Path

from quadspike.errors import QuadspikeError
from quadspike.records.metrics import compact
from quadspike.records.runs import RunRecord, device, whole
from quadspike.training.folder import RunFolder
from quadspike.training.recipe import Recipe


def read_finished(run: Path) -> RunRecord | None:
    """What tables and figures need of the run in the folder `run`; None before its end."""
    file = RunFolder(run).record
    if not file.exists():
        return None

    def read() -> RunRecord | None:
        found = json.loads(file.read_text(encoding="utf-8"))
        if found["summary"]["status"] != "finished":
            return None
        found["summary"]["device"] = device(found)
        recipe = Recipe.from_dict(found["recipe"])
        return RunRecord(run.name, recipe, compact(found["metrics"]), found)

    try:
        return whole(read)
    except QuadspikeError as error:
        raise QuadspikeError(f"{file}: {error}") from None
