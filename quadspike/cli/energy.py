"""`quadspike energy`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from quadspike.cli.console import make_console
from quadspike.cli.options import DataRoot


def energy(
    model: Positional[Annotated[str | None, arg(metavar="MODEL|RUN")]] = None,
    dataset: Annotated[str | None, arg(metavar="STR")] = None,
    timesteps: Annotated[int | None, arg(metavar="INT")] = None,
    neuron: Annotated[str | None, arg(metavar="STR")] = None,
    residual: Annotated[str | None, arg(metavar="STR")] = None,
    rate: Annotated[float | None, arg(metavar="FLOAT")] = None,
    weights: Annotated[Path | None, arg(metavar="FILE")] = None,
    inputs: Annotated[Path | None, arg(metavar="FILE")] = None,
    samples: int = 128,
    mac: float = 4.6,
    ac: float = 0.9,
    stem_every_step: bool = False,
    paper: bool = False,
    json: Annotated[Path | None, arg(metavar="FILE")] = None,
    device: str = "auto",
    data_root: DataRoot = None,
) -> None:
    """Count operations and energy of a network, layer by layer.

    For a network by name at stated firing rates, for a run or saved weights on measured ones, or
    for the paper's own table:
      quadspike energy resnet19 --dataset cifar10 --timesteps 2
      quadspike energy runs/full --json energy.json
      quadspike energy --weights model.safetensors --inputs images.npy
      quadspike energy --paper

    Args:
        model: A model's name (see `quadspike models`), or the folder of a run or of exported
            weights: its last weights are measured on test images of its data set, and put beside
            the paper's figures where that has the setting. Not needed with --weights or --paper.
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
        samples: Of a run: how many test images to measure on, as many as its summary unless said
            otherwise.
        mac: Picojoule per multiply-accumulate (45 nm).
        ac: Picojoule per accumulate (45 nm).
        stem_every_step: Bill a static image's first convolution at every step, as the paper does.
        paper: Print the paper's Table 3 beside ours, cell by cell.
        json: Also write all numbers to this file.
        device: Of a run: auto, cpu, cuda or cuda:N.
    """
    from quadspike.analysis.energy import EnergyCosts, beside_table, paper_tables, report_table
    from quadspike.analysis.energy.beside import write_report
    from quadspike.analysis.energy.request import EnergyRequest
    from quadspike.atomic import check_file
    from quadspike.errors import QuadspikeError
    from quadspike.models import list_models
    from quadspike.records.energy import run_energy

    console = make_console(at_least=80)
    if paper:
        if json is not None:
            raise QuadspikeError("--json is for a network's numbers; leave --paper out, or --json")
        console.print(paper_tables())
        return
    if json is not None:
        check_file(json)
    costs, beside, about = EnergyCosts(mac, ac), None, {}
    named = (model, dataset, timesteps, neuron, residual, rate, weights, inputs)
    if model is not None and model not in list_models() and Path(model).is_dir():
        if any(value is not None for value in named[1:]):
            raise QuadspikeError(
                f"{model} says itself what it is, and its rates are measured: leave out --dataset, "
                "--timesteps, --neuron, --residual, --rate, --weights and --inputs"
            )
        run = run_energy(
            Path(model),
            samples=samples,
            device=device,
            data_root=data_root,
            costs=costs,
            stem_every_step=stem_every_step,
        )
        heading, report, beside = f"{model}: {run.about}", run.report, run.beside_paper()
        about = run.numbers()
    elif model is not None and "/" in model:
        raise QuadspikeError(
            f"there is no folder {model}; give a run's, or a model: {', '.join(list_models())}"
        )
    else:
        heading, report = EnergyRequest(*named, costs, stem_every_step).answer()
    print(heading)
    console.print("", report_table(report))
    if beside is not None:
        console.print("", beside_table(beside))
    if json is not None:
        write_report(json, report, {"heading": heading, **about}, beside)
