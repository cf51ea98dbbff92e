"""The fast record: the least time from CIFAR-10 on disk to a spiking ResNet-19 of 96 %.

docs/speedrun.md states the rules in words; here they decide which runs on record are listed.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from quadspike.markdown import markdown_table
from quadspike.records.cells import mean_percent, seeds_of
from quadspike.records.groups import by_setting, distinct, read_runs
from quadspike.records.naming import recipe_name
from quadspike.records.runs import RunRecord
from quadspike.records.store import Store
from quadspike.written import capitals, duration

TARGET = 0.96
"""Of the test images, classified by the folded network; the mean of all seeds on record."""
TEST_IMAGES = 10_000
NETWORK = {"dataset": "cifar10", "model": "resnet19", "timesteps": 2, "stem_width": None}
LISTS = {
    "sum-then-fire": "Binary activations: every neuron's output is 0 or 1 and is read as it is.",
    "fire-then-sum": "Integer-valued sums: blocks add up spikes, and the next one reads the sum.",
}
"""By the residual of the network."""
_HEADINGS = ("time", "folded, %", "seeds", "recipe", "neuron, loss", "epochs", "GPU", "record")
_ALIGN = "rrrllrll"


def fastest_table(records: Sequence[RunRecord]) -> str:
    """Markdown: for each kind of network its entries, the fastest first."""
    entries = [runs for runs in by_setting(distinct(records)) if not why_not(runs)]
    entries.sort(key=_seconds)
    parts = []
    for residual, words in LISTS.items():
        rows = [_row(runs) for runs in entries if runs[0].recipe.residual == residual]
        parts += [words, markdown_table(_HEADINGS, _ALIGN, rows) if rows else "None on record yet."]
    return "\n\n".join(parts) + "\n"


def not_listed(store: Store) -> list[str]:
    """A line for each setting with exported weights that is no entry, with the reason."""
    return [
        f"{', '.join(run.name for run in runs)} not listed: {why}"
        for runs in by_setting(distinct(read_runs(store, bool)))
        if any(run.content["export"] for run in runs) and (why := why_not(runs))
    ]


def why_not(runs: Sequence[RunRecord]) -> str:
    """Why the runs of a setting, all of its seeds, are no entry; empty if they are one."""
    for field, value in NETWORK.items():
        found = getattr(runs[0].recipe, field)
        if found != value:
            return f"{field} is {found}, not {value}"
    if runs[0].recipe.neuron.startswith("ternary"):
        return "its spikes have a sign"
    if runs[0].first_weights:
        return f"it started from {runs[0].first_weights}"
    parts = [*runs[0].content.get("earlier_environments", ()), runs[0].content["environment"]]
    made_on = {(part["workers"], part["device"]) for part in parts}
    if len(made_on) > 1 or any(part["workers"] > 1 or not part["cuda"] for part in parts):
        return f"it was trained on {runs[0].summary['device']}, not on one GPU"
    for run in runs:
        scores = (run.content["export"] or {}).get("evaluation", {})
        if scores.get("count") != TEST_IMAGES or "folded_accuracy" not in scores:
            return f"the folded weights of {run.name} were not scored on {TEST_IMAGES:,} images"
    if not any(map(_compiled, runs)):
        return "its kernels were compiled beforehand, or nobody counted them"
    mean = fmean(map(_folded, runs))
    return "" if mean >= TARGET else f"its folded accuracy is {mean:.2%}"


def _folded(record: RunRecord) -> float:
    return float(record.content["export"]["evaluation"]["folded_accuracy"])


def _compiled(record: RunRecord) -> bool:
    """Whether its record shows that all kernels were compiled in its time."""
    kernels = record.content.get("kernels") or {"compiled": 0, "cached": 0}
    return bool(kernels["compiled"] and not kernels["cached"])


def _seconds(runs: Sequence[RunRecord]) -> float:
    return fmean(run.summary["seconds"] for run in runs if _compiled(run))


def _row(runs: Sequence[RunRecord]) -> list[str]:
    recipe = runs[0].recipe
    return [
        f"**{duration(_seconds(runs))}**",
        mean_percent([*map(_folded, runs)]),
        seeds_of(runs),
        recipe_name(recipe),
        f"{recipe.neuron_words()}, {capitals(recipe.loss)}",
        str(recipe.epochs),
        runs[0].summary["device"],
        ", ".join(run.name for run in runs),
    ]
