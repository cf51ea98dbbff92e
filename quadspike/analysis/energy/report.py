"""What one inference costs, layer by layer.

`E = T (fr E_AC OP_AC + E_MAC OP_MAC)`, with `fr` the firing rate of the layer's input. A
synapse that receives spikes accumulates; one that receives real values, and every neuron,
multiplies and accumulates. Normalisation folds into weights and costs nothing, or is named as not
counted; thresholds, resets and the sums of residual connections are not billed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

from torch import Tensor

from quadspike.analysis.energy.counts import (
    Measurement,
    SomaCount,
    SynapseCount,
    count_operations,
    measure,
)
from quadspike.analysis.energy.inputs import Sample, stated_rates
from quadspike.data.geometry import Geometry
from quadspike.errors import QuadspikeError
from quadspike.models import Network
from quadspike.neurons import LIF, QIF

PJ_PER_MJ = 1e9

FLAGS = {
    "real": "its input is real-valued: every operation is a MAC",
    "once": "a static image's first synapse runs once for all steps",
    "integer": "its input holds sums of spikes: a value of n counts as n accumulates",
    "graded": "its input is not integer-valued (pooled): the exact count bills one MAC for "
    "each output a nonzero value reaches",
}


@dataclass(frozen=True)
class EnergyCosts:
    """What one operation costs in pJ; the defaults are 32-bit floats in 45 nm."""

    mac: float = 4.6
    ac: float = 0.9

    def __post_init__(self) -> None:
        for name, value in {"mac": self.mac, "ac": self.ac}.items():
            if not (math.isfinite(value) and value > 0):
                raise QuadspikeError(f"energy cost {name!r} must be a number > 0 pJ, got {value}")


COSTS_45NM = EnergyCosts()


class EnergyRow(NamedTuple):
    """One layer: operations per step, energies in pJ per inference.

    `rate` is that of a synapse's input; where it was measured, neurons have their own. `exact_ops`
    are the operations of one inference that the measured spikes really caused.
    """

    layer: str
    kind: str
    neurons: int
    macs: int
    acs: int
    rate: float | None
    energy_pj: float
    exact_ops: float | None
    exact_energy_pj: float | None
    flags: tuple[str, ...]


class Totals(NamedTuple):
    """Energies of one inference in mJ: as the network is, and with each neuron in its place."""

    energy_mj: float
    qif_mj: float
    lif_mj: float

    @property
    def overhead_mj(self) -> float:
        """What QIF costs more than LIF."""
        return self.qif_mj - self.lif_mj

    @property
    def overhead_share(self) -> float:
        """The overhead as a share of the energy with QIF, as the paper states it."""
        return self.overhead_mj / self.qif_mj

    def numbers(self) -> dict[str, float]:
        """All five, by name."""
        more = {"overhead_mj": self.overhead_mj, "overhead_share": self.overhead_share}
        return {**self._asdict(), **more}


@dataclass(frozen=True)
class EnergyReport:
    """The rows and their totals: `estimate` is rate x count, `exact` follows the spikes."""

    rows: tuple[EnergyRow, ...]
    timesteps: int
    costs: EnergyCosts
    source: Literal["measured", "stated"]
    uncounted: tuple[str, ...] = ()

    @property
    def neurons(self) -> int:
        return sum(row.neurons for row in self.rows)

    @property
    def macs_per_step(self) -> int:
        """MACs of the real-valued synapses and of every neuron."""
        return sum(row.macs for row in self.rows)

    @property
    def acs_per_step(self) -> int:
        """ACs if every input fired."""
        return sum(row.acs for row in self.rows)

    @property
    def rates(self) -> dict[str, float]:
        """The firing rate of each spiking synapse's input, as `energy(rates=...)` takes it."""
        return {row.layer: row.rate for row in self._spiking if row.rate is not None}

    @property
    def input_rate(self) -> float:
        """The mean rate of the synapses' inputs, weighted by their ACs: the formula's one `fr`."""
        return _mean([(row.acs, row.rate or 0.0) for row in self._spiking])

    @property
    def firing_rate(self) -> float | None:
        """The mean rate of all neurons; None where nothing was measured."""
        parts = [(row.neurons, row.rate or 0.0) for row in self.rows if row.neurons]
        return _mean(parts) if self.source == "measured" else None

    @property
    def overhead_macs(self) -> int:
        """MACs an inference takes more with QIF than with LIF."""
        return self.timesteps * self.neurons * (QIF.macs_per_step - LIF.macs_per_step)

    @property
    def estimate(self) -> Totals:
        return self._totals([row.energy_pj for row in self.rows])

    @property
    def exact(self) -> Totals | None:
        """From the operations that occurred; None where rates were only stated."""
        parts = [row.exact_energy_pj for row in self.rows if row.exact_energy_pj is not None]
        return self._totals(parts) if self.source == "measured" else None

    @property
    def ann_mj(self) -> float:
        """The same network with ReLU: each synapse dense, once, and no cost for neurons."""
        synapses = sum(row.macs + row.acs for row in self.rows if not row.neurons)
        return synapses * self.costs.mac / PJ_PER_MJ

    def numbers(self) -> dict[str, Any]:
        """Every number, ready for JSON; `exact` is None where rates were stated."""
        return {
            "timesteps": self.timesteps,
            "picojoule": asdict(self.costs),
            "rates": self.source,
            "firing_rate": self.firing_rate,
            "input_rate": self.input_rate,
            "neurons": self.neurons,
            "macs_per_step": self.macs_per_step,
            "acs_per_step": self.acs_per_step,
            "overhead_macs": self.overhead_macs,
            "estimate": self.estimate.numbers(),
            "exact": self.exact and self.exact.numbers(),
            "ann_mj": self.ann_mj,
            "uncounted": list(self.uncounted),
            "layers": [row._asdict() for row in self.rows],
        }

    @property
    def _spiking(self) -> list[EnergyRow]:
        """Synapses that receive spikes."""
        return [row for row in self.rows if row.acs]

    def _totals(self, parts: list[float]) -> Totals:
        total = math.fsum(parts)
        own = sum(row.macs for row in self.rows if row.neurons)
        one_mac_each = self.timesteps * self.costs.mac
        synapses = total - own * one_mac_each
        qif, lif = (
            synapses + kind.macs_per_step * self.neurons * one_mac_each for kind in (QIF, LIF)
        )
        return Totals(total / PJ_PER_MJ, qif / PJ_PER_MJ, lif / PJ_PER_MJ)


def energy(
    model: Network,
    geometry: str | Geometry | tuple[int, ...],
    *,
    timesteps: int | None = None,
    rates: float | Mapping[str, float] | None = None,
    inputs: Tensor | Iterable[Tensor] | None = None,
    costs: EnergyCosts = COSTS_45NM,
    stem_every_step: bool = False,
) -> EnergyReport:
    """The energy of one inference, from stated firing rates or from measured spikes.

    `geometry` is a data set's name, its `Geometry`, or the shape of one sample: `[C, H, W]`
    for a static image, `[T, C, H, W]` for a sequence. `rates` is one number for every
    spiking synapse or one per layer; `inputs` is a batch to measure, or several. A static
    image's first synapse runs once; `stem_every_step` bills it at each step, as the paper does.

    >>> from quadspike.models import create_model
    >>> report = energy(create_model("cnn", in_channels=1), "digits", timesteps=4, rates=0.1)
    >>> report.macs_per_step, report.acs_per_step
    (25600, 591104)
    """
    sample = Sample.of(geometry, model, timesteps)
    if (rates is None) == (inputs is None):
        raise QuadspikeError(
            "energy needs firing rates from one place, got "
            f"{'neither' if rates is None else 'both'} of rates= and inputs=: state them "
            "(rates=0.15, or a dict by layer), or give inputs to measure them on"
        )
    counts = count_operations(model, sample.empty(model), sample.steps)
    sample.check_outputs(counts)
    if inputs is None:
        known, measured = stated_rates(rates, counts), None
    else:
        batches = [inputs] if isinstance(inputs, Tensor) else inputs
        checked = sample.checked(batches, model)
        measured = measure(model, checked, sample.steps, sample.static, counts)
        if not measured.samples:
            raise QuadspikeError("inputs held no batch; give at least one to measure on")
        known = {name: seen.rate for name, seen in measured.traffic.items()}
    bill = _Bill(costs, sample.steps, stem_every_step, known, measured)
    rows = tuple(
        bill.soma(layer) if isinstance(layer, SomaCount) else bill.synapse(layer)
        for layer in counts.layers
    )
    source: Literal["measured", "stated"] = "stated" if measured is None else "measured"
    return EnergyReport(rows, sample.steps, costs, source, counts.uncounted)


@dataclass(frozen=True)
class _Bill:
    """Turns counts into rows."""

    costs: EnergyCosts
    steps: int
    stem_every_step: bool
    rates: Mapping[str, float]
    measured: Measurement | None

    def soma(self, layer: SomaCount) -> EnergyRow:
        macs = layer.neurons * layer.macs_per_step
        pj = self.steps * macs * self.costs.mac
        rate = ops = exact_pj = None
        if self.measured is not None:
            rate = self.measured.fired[layer.layer] / self.measured.samples
            ops, exact_pj = float(self.steps * macs), pj
        return EnergyRow(
            layer.layer, layer.kind, layer.neurons, macs, 0, rate, pj, ops, exact_pj, ()
        )

    def synapse(self, layer: SynapseCount) -> EnergyRow:
        once = layer.evaluations < self.steps and not self.stem_every_step
        times = layer.evaluations if once else self.steps
        flags = ["real"] * layer.real + ["once"] * once
        rate = None if layer.real else self.rates[layer.layer]
        macs, acs = (layer.macs, 0) if layer.real else (0, layer.macs)
        pj = times * (macs * self.costs.mac + (rate or 0.0) * acs * self.costs.ac)
        ops = exact_pj = None
        if self.measured is not None:
            seen = self.measured.traffic[layer.layer]
            multiplies = layer.real or seen.graded
            ops = seen.multiplies if multiplies else seen.accumulates
            ops *= times / layer.evaluations / self.measured.samples
            exact_pj = ops * (self.costs.mac if multiplies else self.costs.ac)
            flags += ["graded"] * (seen.graded and not layer.real)
            flags += ["integer"] * (not multiplies and seen.largest > 1)
        return EnergyRow(
            layer.layer, layer.kind, 0, macs, acs, rate, pj, ops, exact_pj, tuple(flags)
        )


def _mean(weighted: list[tuple[int, float]]) -> float:
    return sum(n * value for n, value in weighted) / max(1, sum(n for n, _ in weighted))
