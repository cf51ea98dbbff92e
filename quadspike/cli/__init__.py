"""The command `quadspike`: a thin door that parses, calls and prints."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console
from rich.table import Table
from tyro.conf import FlagCreatePairsOff, Positional, arg

from quadspike.errors import QuadspikeError, check_name

Format = Literal["svg", "pdf", "png"]


def energy(
    model: Positional[Annotated[str | None, arg(metavar="MODEL")]] = None,
    dataset: str = "cifar10",
    timesteps: Annotated[int | None, arg(metavar="INT")] = None,
    neuron: str = "qif",
    residual: str = "fire-then-sum",
    rate: Annotated[float | None, arg(metavar="FLOAT")] = None,
    weights: Annotated[Path | None, arg(metavar="FILE")] = None,
    inputs: Annotated[Path | None, arg(metavar="FILE")] = None,
    mac: float = 4.6,
    ac: float = 0.9,
    stem_every_step: bool = False,
    paper: bool = False,
) -> None:
    """Count operations and energy of a network, layer by layer.

    For a network by name at stated firing rates, for saved weights on measured ones, or for
    the paper's own table:

      quadspike energy resnet19 --dataset cifar10 --timesteps 2

      quadspike energy --weights model.safetensors --inputs images.npy

      quadspike energy --paper

    Args:
        model: A model's name (see `quadspike models`); not needed with --weights or --paper.
        dataset: Whose input shape and classes: cifar10, cifar100, imagenet, cifar10-dvs, digits.
        timesteps: Steps a static image is shown, or frames of an event recording; 2 unless
            the weights say otherwise.
        neuron: qif or lif.
        residual: fire-then-sum or sum-then-fire, for the ResNets.
        rate: The firing rate assumed for every layer's input; without it, the rate that the
            paper's Table 3 implies, or an untrained layer's where it implies none.
        weights: A model file saved by quadspike; measured on --inputs, else with stated rates.
        inputs: A .npy file of inputs as the network takes them, [N, C, H, W] or [T, N, C, H, W];
            rates and synaptic operations are then measured, not assumed.
        mac: Picojoule per multiply-accumulate (45 nm).
        ac: Picojoule per accumulate (45 nm).
        stem_every_step: Bill a static image's first convolution at every step, as the paper does.
        paper: Print the paper's Table 3 beside ours, cell by cell.
    """
    from quadspike.analysis.energy import EnergyCosts, paper_tables, report_table
    from quadspike.analysis.energy.request import EnergyRequest

    console = Console()
    if paper:
        console.print(paper_tables())
        return
    request = EnergyRequest(
        model,
        dataset,
        timesteps,
        neuron,
        residual,
        rate,
        weights,
        inputs,
        EnergyCosts(mac, ac),
        stem_every_step,
    )
    heading, report = request.answer()
    console.print(heading, report_table(report), sep="\n\n", highlight=False)


def figures(
    out: Positional[Annotated[Path, arg(metavar="FOLDER")]],
    formats: tuple[Format, ...] = ("svg", "pdf", "png"),
    only: tuple[str, ...] = (),
    a: float = 0.25,
    u1: float = 0.0,
    u2: float = 0.5,
    u_th: float = 0.5,
) -> None:
    """Draw the neuron: recurrence, cobweb, phase portrait, density, LIF against QIF.

    Args:
        out: The folder to write to.
        formats: Any of svg, pdf, png.
        only: Names of single figures; all without it.
        a: Sharpness of the parabola.
        u1: One root.
        u2: The other root.
        u_th: The firing threshold.
    """
    from quadspike.analysis.figures import draw_all
    from quadspike.neurons import QIF

    neuron = QIF(a=a, u1=u1, u2=u2, u_th=u_th)
    for path in draw_all(out, neuron, formats=formats, names=only or None):
        print(path)


def models() -> None:
    """List the networks `create_model` knows."""
    from quadspike.models import describe_models

    table = Table("model", "what it is", box=None, header_style="bold")
    for name, summary in describe_models().items():
        table.add_row(name, summary)
    Console().print(table)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; a user's mistake ends with one line and exit code 2."""
    commands: dict[str, Callable[..., None]] = {
        "energy": energy,
        "figures": figures,
        "models": models,
    }
    given = sys.argv[1:] if arguments is None else arguments
    try:
        if given and not given[0].startswith("-"):
            check_name("command", given[0], commands)
        tyro.extras.subcommand_cli_from_dict(
            commands,
            prog="quadspike",
            description="Deep spiking networks around the discretized QIF neuron.",
            args=given,
            config=(FlagCreatePairsOff,),
        )
    except QuadspikeError as error:
        print(f"quadspike: {error}", file=sys.stderr)
        raise SystemExit(2) from None
