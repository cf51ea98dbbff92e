"""Accuracy against how well a surrogate agrees with the slope it stands for, as runs begin."""

from __future__ import annotations

from collections.abc import Sequence

from quadspike.analysis.bias import surrogate_bias
from quadspike.analysis.dynamics import number
from quadspike.errors import QuadspikeError
from quadspike.neurons import create_neuron
from quadspike.records.groups import differing, label
from quadspike.records.runs import RunRecord
from quadspike.records.series import Plot, Points, Series, curve, judged_by
from quadspike.training.recipe import Recipe

AGREEMENT = "agreement"
_TOLD_APART = ("neuron", "residual")
"""What colours tell apart; whatever else differs is one cloud."""


def agreement(recipe: Recipe) -> float:
    """The cosine of `Bias.agreement` for the membranes that the first normalisation makes.

    >>> from quadspike.recipes import create_recipe
    >>> recipe = create_recipe("cifar10-resnet19")
    >>> [round(agreement(recipe.but(window=centre)), 2) for centre in ("mean", "threshold")]
    [0.76, 0.99]
    """
    neuron = create_neuron(recipe.neuron_config())
    if recipe.norm == "tdbn":
        spread = number(neuron.threshold) * (1.0 if recipe.eta is None else recipe.eta)
    elif recipe.norm == "bn":
        spread = 1.0
    else:
        raise QuadspikeError(
            f"{AGREEMENT} is known where currents start as tdbn or bn make them, not with "
            f"norm={recipe.norm!r}; draw groups without it"
        )
    density = neuron.density(input_std=spread * recipe.initial_gain)
    return surrogate_bias(neuron, density=density).agreement


def by_agreement(records: Sequence[RunRecord]) -> Plot:
    """A point for every run, after its last epoch."""
    fields = [field for field in differing(records) if field in _TOLD_APART]
    judge, said = judged_by(records)
    found: dict[str, list[Points]] = {}
    for record in records:
        point = agreement(record.recipe), curve(record, judge)[-1][1]
        found.setdefault(label(record, fields), []).append([point])
    series = [Series(called, runs) for called, runs in sorted(found.items())]
    x = "agreement of the surrogate with the slope it stands for, as training begins"
    return Plot(x, said, series, "numbers", joined=False)
