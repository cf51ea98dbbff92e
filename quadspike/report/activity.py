"""What the layers do: firing rates, windows, membranes."""

from __future__ import annotations

from collections.abc import Sequence

from quadspike.report.bars import Bar, bar_chart
from quadspike.report.curves import Curve, dots, line_chart
from quadspike.report.histograms import histogram_chart, reach
from quadspike.report.labels import Shown, bare, figure, key, legend, run_heading
from quadspike.report.looks import depth
from quadspike.report.markup import Html, join, tag
from quadspike.report.svg import short
from quadspike.written import percent

_MOST_NAMED = 8


def firing(runs: Sequence[Shown]) -> Html | None:
    """Rates of the layers at the end, and rates and windows of each run over its epochs."""
    parts = []
    known = [shown for shown in runs if shown.layers]
    if known:
        charts = [
            figure(title, caption, bar_chart(f"{title} at the end of the run", _bars(known, field)))
            for field, title, caption in (
                ("rate", "Firing rate by layer", "Share of neurons that fire in a step."),
                ("inside_window", "Inside the window by layer", "Where a gradient passes."),
            )
        ]
        parts += [legend(known), tag("div", *charts, class_="grid")]
    for shown in runs:
        charts = []
        for field, title, caption in (
            ("rates", "Firing rate over epochs", "Each layer a line."),
            ("window", "Inside the window over epochs", "Where a gradient passes."),
        ):
            curves = _layer_curves(shown, field)
            if curves:
                label = f"{title} of {len(curves)} layers of {shown.label}"
                words = f"{caption} {dots(curves)}".rstrip()
                charts.append(figure(title, words, line_chart(label, curves, " %", zero=True)))
        if charts:
            names = list(dict.fromkeys(n for epoch in shown.run.epochs for n in epoch.rates))
            grid = tag("div", *charts, class_="grid")
            parts += [run_heading(shown, runs), _depth_legend(names), grid]
    return join(parts) if parts else None


def membranes(runs: Sequence[Shown]) -> Html | None:
    """A histogram a layer and run, with its window and threshold, all over the same range."""
    known = [shown for shown in runs if shown.layers]
    if not known:
        return None
    lows, highs = zip(*(reach(layer) for shown in known for layer in shown.layers), strict=True)
    parts = []
    for shown in known:
        minis = [
            figure(
                bare(layer.layer),
                f"{percent(layer.inside_window, 0)} inside, {percent(layer.rate)} fire",
                histogram_chart(layer, shown.index, (min(lows), max(highs))),
            )
            for layer in shown.layers
        ]
        parts += [run_heading(shown, runs), tag("div", *minis, class_="minis")]
    words = (
        "How the membranes of each layer are spread at the end of the run. A gradient passes "
        "where the membrane lies inside the surrogate's window (shaded, the membranes there "
        "dark); at a threshold (dotted line) and beyond it, it fires."
    )
    return join([tag("p", words), *parts])


def _layer_curves(shown: Shown, field: str) -> list[Curve]:
    points: dict[str, list[tuple[float, float]]] = {}
    for epoch in shown.run.epochs:
        for name, share in getattr(epoch, field).items():
            points.setdefault(name, []).append((epoch.epoch, 100 * share))
    last = max(1, len(points) - 1)
    return [
        Curve(bare(name), along, color=depth(i / last))
        for i, (name, along) in enumerate(points.items())
    ]


def _bars(runs: Sequence[Shown], field: str) -> list[tuple[str, list[Bar]]]:
    rows: dict[str, list[Bar]] = {}
    for shown in runs:
        for layer in shown.layers:
            share = getattr(layer, field)
            title = f"{layer.layer}, {shown.label}: {percent(share, 2)}"
            if field == "rate":
                title += "; by step " + ", ".join(map(percent, layer.rate_by_step))
            bar = Bar(shown.index, (share,), percent(share), title)
            rows.setdefault(bare(layer.layer), []).append(bar)
    return list(rows.items())


def _depth_legend(names: Sequence[str]) -> Html:
    """A few layers by name, many as a ramp from the first to the last."""
    if len(names) <= _MOST_NAMED:
        keys = [
            tag("li", key(None, depth(i / max(1, len(names) - 1))), short(bare(name), 40))
            for i, name in enumerate(names)
        ]
        return tag("ul", *keys, class_="legend")
    ramp = f"background:linear-gradient(90deg,{depth(0)},{depth(1)})"
    first, last = (short(bare(names[end]), 40) for end in (0, -1))
    item = tag("li", first, tag("span", class_="ramp", style=ramp), last)
    return tag("ul", item, class_="legend")
