"""Where the energy of an inference goes."""

from __future__ import annotations

from collections.abc import Sequence

from quadspike.report.bars import Bar, bar_chart
from quadspike.report.labels import Shown, figure, legend
from quadspike.report.markup import Html, join, tag
from quadspike.report.runs import LayerEnergy
from quadspike.report.tables import table
from quadspike.written import millijoule, significant


def energy(runs: Sequence[Shown]) -> Html | None:
    """Where the energy goes: synapses full, neurons paler."""
    known = [shown for shown in runs if shown.energy]
    if not known:
        return None
    costs = [_blocks(shown.energy) for shown in known]
    rows = [
        (
            name,
            [
                Bar(
                    shown.index,
                    (synapses, neurons),
                    significant((synapses + neurons) / 1e6),
                    f"{name}, {shown.label}: synapses {significant(synapses / 1e6)} µJ, "
                    f"neurons {significant(neurons / 1e6)} µJ",
                )
                for shown, cost in zip(known, costs, strict=True)
                if name in cost
                for synapses, neurons in [cost[name]]
            ],
        )
        for name in dict.fromkeys(name for cost in costs for name in cost)
    ]
    caption = "In µJ an inference; synapses full, neurons pale."
    chart = bar_chart("Energy of each layer, in microjoule an inference", rows)
    by_layer = figure("Energy by layer", caption, chart)
    return join([legend(known), tag("div", by_layer, _totals(known), class_="grid")])


def _blocks(rows: Sequence[LayerEnergy]) -> dict[str, tuple[float, float]]:
    """Synapses and neurons of what belongs together: `conv1.synapse` and `conv1.soma`."""
    blocks: dict[str, tuple[float, float]] = {}
    for row in rows:
        name = row.layer.removesuffix(".synapse").removesuffix(".soma")
        synapses, own = blocks.get(name, (0.0, 0.0))
        cost = row.energy_pj if row.exact_energy_pj is None else row.exact_energy_pj
        blocks[name] = (synapses, own + cost) if row.neurons else (synapses + cost, own)
    return blocks


def _totals(runs: Sequence[Shown]) -> Html:
    """What an inference costs: as it is, with either neuron, and with ReLU instead of spikes."""
    rows = []
    for shown in runs:
        if shown.run.record is None:
            continue
        s = shown.run.record.summary
        values = (s.energy_mj, s.energy_as_lif_mj, s.energy_as_qif_mj, s.energy_ann_mj)
        cells = [tag("td", millijoule(value), class_="number") for value in values]
        rows.append([tag("th", shown.named, scope="row"), *cells])
    titles = ["run", "as trained", "with LIF", "with QIF", "dense, with ReLU"]
    return table("Energy of one inference, on the measured firing rates.", titles, rows, first=1)
