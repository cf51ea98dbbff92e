"""The documentation page of all methods, made from the registry."""

from __future__ import annotations

from collections.abc import Iterable

from quadspike.markdown import markdown_table
from quadspike.methods import DATASETS, METHODS, Figure, Method
from quadspike.written import with_spread

_OPENING = (
    "# The methods",
    "<!-- Made by `python -m quadspike.methods docs/methods.md`; edit quadspike/methods/. -->",
    "The paper compares QIF with systems quoted from their own publications, each with its own "
    "network, data and tricks. Here every one of them is a few fields of a recipe, so that they "
    "run in one harness, one flag apart: the same network, data, schedule and seeds. "
    "`quadspike compare` does that and makes the table; `quadspike compare --list` names them.",
    "Unless a method says otherwise its neuron is LIF with beta = 1/4 and u_th = 1/2, its "
    "surrogate the neuron's own (for LIF a rectangle of half width 1/2 around the threshold), its "
    "normalisation tdBN, its loss the cross-entropy of the logits' mean over time. `I(t)` is a "
    "neuron's normalised input at step t, `u` its membrane, `o` its spike, `[...]` 1 where true "
    "and else 0, `O(t)` the network's logits, `y` the label; states start at 0, and a membrane at "
    "the threshold fires.",
    "A **reconstruction** is our reading of a publication whose details are not public; its "
    "figures are no reproduction. Figures are test accuracies in percent as the paper's Tables 1 "
    "and 2 print them. Only QIF's own are of a network and a training that this library has as a "
    "recipe; the others are quoted there from publications with networks and trainings of their "
    "own, and those with a remark were not even measured on what the tables say.",
)


def methods_page() -> str:
    """Markdown: an overview, then a section a method."""
    parts = (*_OPENING, _overview(METHODS.values()), *map(_section, METHODS.values()))
    return "\n\n".join(parts) + "\n"


def flags(method: Method) -> str:
    """The options of `quadspike train` that make a method.

    >>> flags(METHODS["im-loss"])
    '--neuron lif --surrogate evolving --loss im'
    """
    usual = {"norm": "tdbn", "surrogate": None, "loss": "ce", "aid": None}
    named = {field: getattr(method, field) for field in usual}
    parts = [f"--{name} {value}" for name, value in named.items() if value != usual[name]]
    detached = ["--detach-reset"] * method.detach_reset
    return " ".join([f"--neuron {method.neuron}", *parts, *detached])


def _overview(methods: Iterable[Method]) -> str:
    rows = ((f"[`{m.key}`](#{m.key})", m.name, m.kind, m.line, _cite(m)) for m in methods)
    return markdown_table(("name", "method", "changes", "in short", "source"), "lllll", rows)


def _cite(method: Method) -> str:
    first, *others = method.source.authors.split(", ")
    return f"{first}{' et al.' * bool(others)} {method.source.year}"


def _section(method: Method) -> str:
    source = method.source
    lines = [
        f'## <a id="{method.key}"></a>{method.name}',
        "",
        method.paragraph,
        "",
        "```",
        method.equation,
        "```",
        "",
        f"- In the code: `quadspike train RECIPE {flags(method)}`",
        f"- Source: {source.authors}, *{source.title}*, {source.venue} {source.year}.",
        f"- Where the harness differs: {method.differs}",
    ]
    if method.energy_note:
        lines.append(f"- Energy: {method.energy_note}.")
    return "\n".join([*lines, *_figures(method.figures)])


def _figures(figures: Iterable[Figure]) -> list[str]:
    rows = [
        (
            DATASETS[f.dataset],
            f.network,
            str(f.timesteps),
            with_spread(f.accuracy, f.spread),
            f.unlike,
        )
        for f in figures
    ]
    headings = ("data", "network", "T", "printed", "but")
    return ["", markdown_table(headings, "lllll", rows)] if rows else []
