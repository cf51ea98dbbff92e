"""The table of the runs on record beside the paper's figures, and the pages that hold tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from quadspike.atomic import write_text
from quadspike.errors import QuadspikeError
from quadspike.markdown import markdown_table
from quadspike.recipes import paper_figure
from quadspike.records.cells import mean_energy, mean_percent, seeds_of
from quadspike.records.fastest import fastest_table
from quadspike.records.group_table import group_table
from quadspike.records.groups import by_setting, read_groups, read_runs, ungrouped
from quadspike.records.naming import run_name
from quadspike.records.paper import reported
from quadspike.records.runs import RunRecord
from quadspike.records.store import FASTEST, Store
from quadspike.written import NOTHING, capitals, duration, millijoule, with_spread

HEADINGS = (
    "recipe",
    "neuron, loss",
    "network, data",
    "T",
    "epochs",
    "accuracy, %",
    "time",
    "energy an image",
    "the paper, %",
    "its time",
    "its energy",
)
NONE_YET = "No runs are on record yet."
_PLACE = re.compile(
    r"^(<!-- records(?: (\S+))? -->\n)(?:(?!<!-- records).)*?^(<!-- /records -->)",
    re.DOTALL | re.MULTILINE,
)
"""From a marker to what ends it, with no other marker between: that would be one without an end."""


def table(store: Store, group: str = "") -> str:
    """Markdown: a row for the seeds of a recipe together; of a group, else of runs in none.

    `FASTEST` is not a group but the list of the fast record, from all runs.
    """
    if group == FASTEST:
        return fastest_table(read_runs(store, bool))
    if group:
        return group_table(read_groups(store, [group]))
    records = ungrouped(store)
    if not records:
        return NONE_YET + "\n"
    rows = map(_row, sorted(by_setting(records), key=_order))
    shown = markdown_table(HEADINGS, "lll" + "r" * 8, rows)
    return "\n\n".join([shown, *_remarks(records)]) + "\n"


def filled(page: str, store: Store) -> str:
    """`page` with the tables between its markers made anew.

    A marker is `<!-- records -->` or `<!-- records GROUP -->`, and `<!-- /records -->` ends it.
    """
    return _PLACE.sub(lambda m: f"{m[1]}{table(store, m[2] or '')}{m[3]}", page)


def fill_page(path: Path, store: Store) -> bool:
    """Put the tables into a page; whether that changed it."""
    try:
        page = path.read_text(encoding="utf-8")
    except OSError as error:
        raise QuadspikeError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise QuadspikeError(f"{path} is no text in UTF-8: {error}; save it as such") from None
    if not _PLACE.search(page):
        raise QuadspikeError(
            f"{path} has no place for a table; put <!-- records --> and <!-- /records --> on lines "
            "of their own into it"
        )
    new = filled(page, store)
    if new != page:
        write_text(path, new)
    return new != page


def _order(runs: Sequence[RunRecord]) -> tuple[str, str, int, float]:
    """The most accurate first, of the same data, network and steps."""
    recipe, accuracy = runs[0].recipe, fmean(run.summary["accuracy"] for run in runs)
    return recipe.dataset, recipe.model, recipe.timesteps, -accuracy


def _row(runs: Sequence[RunRecord]) -> list[str]:
    recipe = runs[0].recipe
    seconds = duration(fmean(run.summary["seconds"] for run in runs))
    return [
        run_name(runs[0]),
        f"{recipe.neuron_words()}, {capitals(recipe.loss)}",
        f"{recipe.model}, {recipe.dataset}",
        str(recipe.timesteps),
        str(recipe.epochs),
        _accuracy(runs),
        f"{seconds}, {runs[0].summary['device']}",
        mean_energy(runs),
        *_paper(runs[0]),
    ]


def _accuracy(runs: Sequence[RunRecord]) -> str:
    last = [run.summary["accuracy"] for run in runs]
    best = fmean(100 * run.summary["best_test_accuracy"] for run in runs)
    held = "" if runs[0].recipe.validation else "*"
    return f"**{mean_percent(last)}** ({best:.2f}{held}), {seeds_of(runs, 'seed')}"


def _paper(run: RunRecord) -> list[str]:
    """Its figure, time and energy; in brackets if trained otherwise."""
    theirs = reported(run.recipe)
    if theirs is None:
        return [NOTHING] * 3
    like = paper_figure(run.recipe) and run.first_weights is None
    printed = with_spread(*theirs.accuracy), theirs.time, millijoule(theirs.energy_mj)
    return [text if like else f"({text})" for text in printed]


def _remarks(records: Sequence[RunRecord]) -> list[str]:
    halves = sorted({r.content["export"]["dtype"] for r in records if r.content["export"]})
    half = (
        f" Where a run's weights were exported it is the score of those weights, in "
        f"{' or '.join(halves)}."
        if halves
        else ""
    )
    return [
        "Accuracy on the test set after the last epoch, the mean over seeds with the sample "
        f"standard deviation.{half} In brackets the best epoch's, chosen on held-out training "
        "images, or with * on the test set itself.",
        "Time from data on disk to the last evaluation, all evaluations and compilation "
        "included, imports not; kernels that a cache had were not compiled anew. Energy of one "
        "inference at 45 nm, from the spikes of up to 128 test images.",
        "The paper's figures are of QIF, its times on one A100, in brackets where its training was "
        "another than the run's. Its energies come from one mean rate, ours from every operation "
        "that occurred. Made from `records/` by `quadspike records table`.",
    ]
