"""The paper's energy table, and what our counts make of each of its cells.

The paper bills the first convolution at every step. It prints no firing rates, so the rate
that each printed energy implies is computed by inverting the formula; what does not depend
on rates (operation counts, the overhead of QIF over LIF) is checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from typing import Literal

from quadspike.analysis.energy.report import COSTS_45NM, PJ_PER_MJ, EnergyReport, energy
from quadspike.data.geometry import GEOMETRIES
from quadspike.models import create_model

Quantity = Literal["macs", "acs", "energy_mj", "rate", "overhead_mj", "overhead_percent"]

IMPLIED = (
    "Implied: the paper prints no firing rates. This is the mean rate at which the formula "
    "with our counts gives the printed energy, so the energy itself is not checked."
)
IMPLIED_TWICE = (
    "Implied with the paper's AC count, which holds the first convolution; at our count the "
    "printed energy implies {rate:.3f}."
)
FIRST_CONV_TWICE = (
    "The printed count holds the first convolution as ACs although its MACs are billed too: "
    "with it our count is {count:,}, which rounds to the printed figure."
)
RESNET19_OVERHEAD = (
    "Contradicts the paper's own rule, one more MAC per neuron and step, which its other two "
    "networks follow. Any count proportional to neurons grows 2.25 times from 32 x 32 to "
    "48 x 48 inputs; the printed ResNet-19 overheads per step grow 4.65 to 4.71 times."
)


NAMES = {
    "resnet19": "ResNet-19",
    "resnet34": "ResNet-34",
    "vggsnn": "VGGSNN",
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "imagenet": "ImageNet",
    "cifar10-dvs": "CIFAR10-DVS",
}


@dataclass(frozen=True)
class PaperRow:
    """One row of the paper's table, each figure with the digits it was printed with."""

    model: str
    geometry: str
    timesteps: int
    macs: Decimal
    acs: Decimal
    energy_mj: Decimal
    overhead_mj: Decimal
    overhead_percent: Decimal

    @property
    def network(self) -> str:
        return NAMES[self.model]

    @property
    def dataset(self) -> str:
        return NAMES[self.geometry]


@dataclass(frozen=True)
class Cell:
    """Our value of a printed one; `agrees` is None where there is nothing to check."""

    row: PaperRow
    quantity: Quantity
    computed: float
    agrees: bool | None
    note: str = ""


def paper_table() -> list[PaperRow]:
    """The seven rows of the paper's energy table.

    >>> [str(row.energy_mj) for row in paper_table()][:2]
    ['0.633', '1.253']
    """
    return [
        _row("resnet19", "cifar10", 2, "4.98e6", "2.21e9", "0.633", "0.008", "1.20"),
        _row("resnet19", "cifar10", 4, "4.98e6", "2.21e9", "1.253", "0.015", "1.21"),
        _row("resnet19", "cifar100", 2, "4.98e6", "2.21e9", "0.809", "0.008", "0.94"),
        _row("resnet19", "cifar100", 4, "4.98e6", "2.21e9", "1.578", "0.015", "0.96"),
        _row("resnet34", "imagenet", 4, "1.25e8", "3.66e9", "6.402", "0.069", "1.07"),
        _row("vggsnn", "cifar10-dvs", 10, "4.50e6", "1.36e9", "1.312", "0.042", "3.23"),
        _row("resnet19", "cifar10-dvs", 10, "9.88e6", "4.98e9", "11.998", "0.177", "1.48"),
    ]


def compare_with_paper() -> list[Cell]:
    """Every cell of the table beside our value, row by row."""
    return [cell for row in paper_table() for cell in printed_cells(row)]


def agrees(printed: Decimal, computed: float) -> bool:
    """Whether `computed`, rounded to the printed digits, is the printed figure.

    >>> agrees(Decimal("4.98e6"), 4_981_248), agrees(Decimal("0.008"), 0.0148)
    (True, False)
    """
    return Decimal(computed).quantize(printed, rounding=ROUND_HALF_UP) == printed


def implied_rate(row: PaperRow, macs: int, acs: int) -> float:
    """The mean firing rate at which `T (fr E_AC acs + E_MAC macs)` is the printed energy."""
    pj_per_step = float(row.energy_mj) * PJ_PER_MJ / row.timesteps
    return (pj_per_step - COSTS_45NM.mac * macs) / (COSTS_45NM.ac * acs)


def printed_rate(row: PaperRow) -> float:
    """The firing rate that the printed energy of `row` implies, by the paper's own counts."""
    return next(cell.computed for cell in printed_cells(row) if cell.quantity == "rate")


def _row(model: str, geometry: str, timesteps: int, *printed: str) -> PaperRow:
    return PaperRow(model, geometry, timesteps, *map(Decimal, printed))


@lru_cache
def count_network(model: str, geometry: str) -> EnergyReport:
    """The operations of the network that the paper's row is of."""
    shape = GEOMETRIES[geometry]
    network = create_model(
        model,
        neuron="qif",
        in_channels=shape.channels,
        num_classes=shape.classes,
        image_size=shape.size,
        seed=0,  # leaves the caller's random numbers alone
    )
    # Counts per step depend neither on rates nor on the number of steps.
    return energy(network, shape, timesteps=1, rates=0.0)


def printed_cells(row: PaperRow) -> list[Cell]:
    """The cells of one row beside our values for the paper's own network."""
    ours = count_network(row.model, row.geometry)
    macs, acs = ours.macs_per_step, ours.acs_per_step
    overhead = ours.neurons * row.timesteps * COSTS_45NM.mac / PJ_PER_MJ
    percent = 100 * overhead / float(row.energy_mj)
    paper_acs, acs_note, rate_note = acs, "", IMPLIED
    if row.model == "resnet34":
        paper_acs += sum(layer.macs for layer in ours.rows if "real" in layer.flags)
        acs_note = FIRST_CONV_TWICE.format(count=paper_acs)
        rate_note = IMPLIED_TWICE.format(rate=implied_rate(row, macs, acs))
    rate = implied_rate(row, macs, paper_acs)
    pj_per_step = COSTS_45NM.mac * macs + rate * COSTS_45NM.ac * paper_acs
    odd = RESNET19_OVERHEAD if row.model == "resnet19" else ""
    return [
        _checked(row, "macs", macs),
        _checked(row, "acs", acs, acs_note),
        Cell(row, "energy_mj", row.timesteps * pj_per_step / PJ_PER_MJ, None, IMPLIED),
        Cell(row, "rate", rate, None, rate_note),
        _checked(row, "overhead_mj", overhead, odd),
        _checked(row, "overhead_percent", percent, odd),
    ]


def _checked(row: PaperRow, quantity: Quantity, computed: float, note: str = "") -> Cell:
    return Cell(row, quantity, computed, agrees(getattr(row, quantity), computed), note)
