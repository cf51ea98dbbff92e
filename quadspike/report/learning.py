"""How the run learned: losses, accuracies, learning rate, gradient."""

from __future__ import annotations

from collections.abc import Sequence

from quadspike.report.curves import Curve, dots, line_chart
from quadspike.report.labels import Shown, figure, key, legend
from quadspike.report.markup import Html, join, tag
from quadspike.training.recipe import Recipe
from quadspike.written import capitals, significant

_DASHES = {"test": None, "train": "5 4", "validation": "1 4"}


def learning_curves(runs: Sequence[Shown]) -> Html | None:
    """Loss and accuracy over epochs, all runs in the same axes."""
    if not any(shown.run.epochs for shown in runs):
        return None
    charts, splits = [], []
    for kind, unit, scale in (("loss", "", 1.0), ("accuracy", " %", 100.0)):
        curves = []
        for split, dash in _DASHES.items():
            found = _curves(runs, f"{split}_{kind}", split, dash, scale)
            if any(curve.drawn for curve in found):
                curves += found
                splits.append(split)
        label = f"{kind.capitalize()} over epochs: {_endings(curves, unit)}"
        caption = f"{_unlike(runs) if kind == 'loss' else ''} {dots(curves)}".strip()
        charts.append(figure(kind.capitalize(), caption, line_chart(label, curves, unit)))
    keys = [tag("li", key(dash), split) for split, dash in _DASHES.items() if split in splits]
    return join([legend(runs, *keys), tag("div", *charts, class_="grid")])


def optimisation(runs: Sequence[Shown]) -> Html | None:
    """Learning rate and gradient, small."""
    charts = []
    for field, title in (("lr", "Learning rate"), ("grad_norm", "Norm of the gradient")):
        curves = _curves(runs, field)
        if any(curve.drawn for curve in curves):
            label = f"{title} over epochs: {_endings(curves, '')}"
            charts.append(figure(title, "", line_chart(label, curves, zero=True)))
    if not charts:
        return None
    return join([legend(runs), tag("div", *charts, class_="grid small")])


def _unlike(runs: Sequence[Shown]) -> str:
    """What the lines of the losses are, where they differ in more than their samples."""
    owners: dict[str, list[str]] = {}
    for shown in runs:
        owners.setdefault(_minimised(shown.run.recipe), []).append(shown.label)
    if owners.keys() <= {"CE", "LTS"}:  # a cross-entropy of the very scores that are evaluated
        return ""
    told = [f"{what} ({', '.join(labels)})" for what, labels in owners.items()]
    losses = "; ".join(told if len(owners) > 1 else owners)
    return (
        f"Train is the loss as minimised: {losses}. On other samples it is plain cross-entropy, "
        "and the two heights do not compare."
    )


def _minimised(recipe: Recipe) -> str:
    """The loss as trained, in a few words."""
    added = [
        *([f"label smoothing {recipe.label_smoothing:g}"] if recipe.label_smoothing else []),
        *([f"the loss of the heads ({recipe.aid})"] if recipe.aid in ("sml", "shortcuts") else []),
    ]
    return capitals(recipe.loss) + " with " * bool(added) + " and ".join(added)


def _curves(
    runs: Sequence[Shown], field: str, what: str = "", dash: str | None = None, scale: float = 1.0
) -> list[Curve]:
    return [
        Curve(
            " ".join(filter(None, (shown.label if len(runs) > 1 else "", what))) or field,
            [(e.epoch, scale * getattr(e, field)) for e in shown.run.epochs],
            shown.index,
            dash,
        )
        for shown in runs
    ]


def _endings(curves: Sequence[Curve], unit: str) -> str:
    """Where curves end, in words for who cannot see them."""
    ends = [f"{c.name} ends at {significant(c.drawn[-1][1])}{unit}" for c in curves if c.drawn]
    return "; ".join(ends)
