"""`sweep`: a recipe with other values of its fields, one run after the other, through `train`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quadspike.errors import check_count
from quadspike.sweeps.files import write_files
from quadspike.sweeps.folder import SweepFolder
from quadspike.sweeps.jobs import Ended, plan
from quadspike.sweeps.settings import settings
from quadspike.training.queue import Watcher, check_folders, only_place, run_all
from quadspike.training.recipe import Recipe
from quadspike.training.stop import check_minutes


@dataclass(frozen=True)
class Sweep:
    """What the runs came to; the exit code is 1 if one of them failed."""

    ended: tuple[Ended, ...]
    table: str
    exit_code: int


def sweep(
    recipe: Recipe,
    over: Mapping[str, Sequence[Any]] | None = None,
    also: Iterable[Mapping[str, Any]] = (),
    *,
    out: str | Path,
    seeds: int = 1,
    device: str = "auto",
    data_root: str | Path | None = None,
    stop_after: float | None = None,
    watcher: Watcher | None = None,
) -> Sweep:
    """Train `recipe` with every combination of the values in `over`, and with each of `also`.

    A run lies in `OUT/NAME-seedN`, NAME after the fields asked for; `table.md` and `curves.png`
    in `OUT`. Every setting is checked before the first run. Called again, also with more values,
    it goes on: what is finished or has failed is not run again, what was interrupted is resumed.
    A signal, or `stop_after` minutes, save and end the run under way, and the sweep has that exit
    code; a full disk ends it at once.
    """
    chosen = settings(recipe, over, also)
    check_count("seeds", seeds)
    check_minutes(stop_after)
    place = only_place("sweep", device)
    folder = SweepFolder(Path(out))
    with folder.opened(recipe, resume=True) as ours:
        jobs = plan(chosen, seeds, folder)
        check_folders(jobs)

        def keep() -> None:
            ours()
            folder.extend(job.title for job in jobs)

        keep()
        ended, code = run_all(jobs, place, data_root, watcher or Watcher(), keep, stop_after)
        table = write_files(folder)
    return Sweep(tuple(ended), table, code)
