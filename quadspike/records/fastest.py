"""The fast record: the least time from CIFAR-10 on disk to a spiking ResNet-19 of 96 %.

docs/speedrun.md states the rules in words; here they decide which runs on record are listed.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev

from quadspike.analysis.report.numbers import duration
from quadspike.methods.page import percent
from quadspike.records.groups import by_setting
from quadspike.records.naming import recipe_name
from quadspike.records.runs import RunRecord

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


def fastest_table(records: Sequence[RunRecord]) -> str:
    """Markdown: for each kind of network its entries, the fastest first."""
    entered = [runs for runs in by_setting(records) if not any(map(why_not, runs))]
    entries = [runs for runs in entered if fmean(map(_folded, runs)) >= TARGET]
    entries.sort(key=_seconds)
    parts = []
    for residual, words in LISTS.items():
        rows = [_row(runs) for runs in entries if runs[0].recipe.residual == residual]
        parts += [words, _markdown(rows) if rows else "None on record yet."]
    return "\n\n".join(parts) + "\n"


def why_not(record: RunRecord) -> str:
    """The rule that keeps a run out, and with it all seeds of its setting; empty if none does.

    What no rule keeps out is listed if the mean of its seeds reaches the target.
    """
    recipe, exported = record.recipe, record.content["export"]
    for field, value in NETWORK.items():
        if getattr(recipe, field) != value:
            return f"{field} is {getattr(recipe, field)}, not {value}"
    if recipe.neuron.startswith("ternary"):
        return "its spikes have a sign"
    if record.content["environment"]["workers"] > 1:
        return "it was trained on several GPUs"
    if record.first_weights:
        return f"it started from {record.first_weights}"
    kernels = record.content.get("kernels")
    if kernels and (kernels["cached"] or not kernels["compiled"]):
        return "its kernels, or some of them, were compiled beforehand"
    if exported is None or "folded_accuracy" not in exported["evaluation"]:
        return "its folded weights were not scored"
    if exported["evaluation"]["count"] != TEST_IMAGES:
        return f"it was scored on {exported['evaluation']['count']:,} images"
    return ""


def _folded(record: RunRecord) -> float:
    return float(record.content["export"]["evaluation"]["folded_accuracy"])


def _seconds(runs: Sequence[RunRecord]) -> float:
    return fmean(run.summary["seconds"] for run in runs)


def _row(runs: Sequence[RunRecord]) -> list[str]:
    recipe, scores = runs[0].recipe, [100 * _folded(run) for run in runs]
    return [
        f"**{duration(_seconds(runs))}**",
        percent(fmean(scores), stdev(scores) if len(scores) > 1 else None),
        str(len({run.recipe.seed for run in runs})),
        recipe_name(recipe),
        f"{recipe.neuron_words()}, {recipe.loss.upper()}",
        str(recipe.epochs),
        runs[0].summary["device"],
        ", ".join(run.name for run in runs),
    ]


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    align = ["---:", "---:", "---:", "---", "---", "---:", "---", "---"]
    return "\n".join(f"| {' | '.join(line)} |" for line in (_HEADINGS, align, *rows))
