"""`compare`: every method under one recipe, one after the other, through `train`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from quadspike.comparison.files import write_files
from quadspike.comparison.jobs import ComparisonFolder, plan
from quadspike.comparison.rows import Comparison, summarise
from quadspike.errors import QuadspikeError, check_count
from quadspike.methods import METHODS, Method, find_method
from quadspike.training.queue import Watcher, check_folders, only_place, run_all
from quadspike.training.recipe import Recipe
from quadspike.training.record import environment
from quadspike.training.sizes import check_sizes


def choose_methods(keys: Iterable[str] = ()) -> list[Method]:
    """The methods of those names, each once; all of them without a name.

    >>> [method.title for method in choose_methods(["qif", "tet"])]
    ['QIF', 'TET']
    """
    if isinstance(keys, str):
        raise QuadspikeError(f"methods are a list, got {keys!r}; write [{keys!r}]")
    return [find_method(key) for key in dict.fromkeys(keys)] or list(METHODS.values())


def compare(
    recipe: Recipe,
    methods: Iterable[str] = (),
    *,
    out: str | Path,
    seeds: int = 1,
    device: str = "auto",
    data_root: str | Path | None = None,
    watcher: Watcher | None = None,
) -> Comparison:
    """Train `methods` (all of them without a name) under `recipe`, `seeds` times each.

    A run lies in `OUT/METHOD/seed-N`, the table in `OUT`. Called again it goes on: what is
    finished or has failed is not run again, what was interrupted is resumed. A signal saves and
    ends the run under way, and the comparison has its exit code; a full disk ends it at once.
    """
    chosen = choose_methods(methods)
    check_sizes(recipe)
    place = only_place("comparison", device)
    jobs = plan(recipe, chosen, check_count("seeds", seeds), Path(out))
    folder = ComparisonFolder(Path(out))
    with folder.opened(recipe, resume=True) as keep:
        check_folders(jobs)
        outcomes, code = run_all(jobs, place, data_root, watcher or Watcher(), keep)
        rows = tuple(summarise(method, outcomes, recipe) for method in chosen)
        found = Comparison(recipe, seeds, rows, tuple(outcomes), environment(place, 1), code)
        write_files(found, folder)
    return found
