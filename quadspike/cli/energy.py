"""`quadspike energy`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from rich.console import Console
from tyro.conf import Positional, arg


def energy(
    model: Positional[Annotated[str | None, arg(metavar="MODEL")]] = None,
    dataset: Annotated[str | None, arg(metavar="STR")] = None,
    timesteps: Annotated[int | None, arg(metavar="INT")] = None,
    neuron: Annotated[str | None, arg(metavar="STR")] = None,
    residual: Annotated[str | None, arg(metavar="STR")] = None,
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
        dataset: Whose input shape and classes: cifar10, cifar100, imagenet, cifar10-dvs, digits;
            cifar10 unless the weights say otherwise.
        timesteps: Steps a static image is shown, or frames of an event recording; 2 unless
            the weights say otherwise.
        neuron: qif (unless said otherwise), lif, or one of those it is compared with.
        residual: fire-then-sum (unless said otherwise) or sum-then-fire, for the ResNets.
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
