"""The page: head, warnings and sections, in one file that asks nothing of the network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from quadspike.analysis.health import LayerHealth
from quadspike.atomic import write_atomic
from quadspike.errors import QuadspikeError
from quadspike.report import activity, costs, dynamics, learning, tables
from quadspike.report.labels import Shown, named
from quadspike.report.looks import CSS
from quadspike.report.markup import Html, join, tag
from quadspike.report.runs import Run, read_run

# Whatever a name may smuggle in, the browser neither runs nor fetches it.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def write_report(runs: Sequence[str | Path], out: str | Path) -> Path:
    """Write one page about the runs in these folders to `out`, all or nothing."""
    if not runs:
        raise QuadspikeError("a report is about at least one run; give its folder")
    page = render([read_run(path) for path in runs])
    target = Path(out)
    write_atomic(target, page.encode("utf-8", "replace"))  # a lone surrogate in a name has no bytes
    return target


def render(runs: Sequence[Run]) -> str:
    """The whole page; the same runs give the same page."""
    shown = named(runs)
    title = shown[0].label if len(shown) == 1 else f"{len(shown)} runs side by side"
    parts = [part for part in _sections(shown) if part is not None]
    links = [tag("li", tag("a", name, href=f"#{key}")) for key, name, _, _ in parts]
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", f"{title} · quadspike report"),
        tag("style", Html(CSS)),
    )
    top = tag(
        "header",
        tag("p", "quadspike report", class_="kicker"),
        tag("h1", title),
        *(tables.head_card(one) for one in shown),
        _warnings(shown),
        tag("nav", tag("ul", *links), aria_label="Sections"),
    )
    body = tag("body", top, tag("main", *(_section(*part) for part in parts)), _footer())
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


_Section = tuple[str, str, Html, bool]
"""Its anchor, its title, its content, and whether it starts open."""


def _sections(runs: Sequence[Shown]) -> list[_Section | None]:
    several, ended = len(runs) > 1, [shown for shown in runs if shown.run.record]
    compared = join([tables.comparison(runs), tag("h3", "Recipes"), tables.differences(runs)])
    numbers = join(tables.layers(shown) for shown in ended)
    return [
        _part("comparison", "Comparison", compared if several else None),
        _part("curves", "Learning curves", learning.learning_curves(runs)),
        _part("optimisation", "Optimisation", learning.optimisation(runs)),
        _part("firing", "Firing rates", activity.firing(runs)),
        _part("energy", "Energy", costs.energy(runs)),
        _part("membranes", "Membranes", activity.membranes(runs)),
        _part("neuron", "The neuron", dynamics.neurons(runs)),
        _part("layers", "Layers in numbers", numbers if ended else None, start_open=False),
        _part("recipe", "Recipe", tables.recipes(runs), start_open=False),
        _part("environment", "Environment", tables.environments(runs) if ended else None, False),
    ]


def _part(key: str, title: str, content: Html | None, start_open: bool = True) -> _Section | None:
    return None if content is None else (key, title, content, start_open)


def _section(key: str, title: str, content: Html, start_open: bool) -> Html:
    # The anchor is inside, so that a link to it opens the section.
    inside = tag("div", content, class_="body", id=key)
    opened = "" if start_open else None
    return tag("details", tag("summary", tag("h2", title)), inside, open=opened)


def _warnings(runs: Sequence[Shown]) -> Html | None:
    items = [
        tag("li", tag("strong", f"{shown.label}: ") if len(runs) > 1 else None, words)
        for shown in runs
        for words in _warnings_of(shown.run)
    ]
    if not items:
        return None
    return tag("div", tag("h2", "Please note"), tag("ul", *items), class_="warnings", role="note")


def _warnings_of(run: Run) -> list[str]:
    if run.record is None:
        done = f"{len(run.epochs)} of {run.recipe.epochs} epochs are done"
        words = [
            "This run has no record: it is under way, was killed, or was stopped in its first "
            f"epoch; {done}. Shown is what its recipe and its epochs tell."
        ]
        if run.judged is not None:
            for name, rate in run.judged.rates.items():
                inside = run.judged.window.get(name, 1.0)
                problem = LayerHealth(name, rate, inside, 0.0, True).warning
                words += [f"{name}: {problem}"] if problem else []
        return words
    summary = run.record.summary
    words = list(run.record.warnings)
    if summary.status != "finished":
        words.insert(0, f"The run was {summary.status} after {summary.epochs} epochs.")
    return words


def _footer() -> Html:
    words = (
        "Made by quadspike report from the run's own files. The headline is the last epoch's "
        "test accuracy; a best epoch chosen on the test set flatters. Energies count 45 nm "
        "operations and leave memory aside."
    )
    return tag("footer", tag("p", words))
