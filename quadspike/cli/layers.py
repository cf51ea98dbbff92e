"""`quadspike layers`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from quadspike.cli.options import DataRoot

Weights = Literal["initial", "best", "last"]
Images = Literal["training", "held-out"]


def layers(
    subjects: Positional[Annotated[tuple[str, ...], arg(metavar="RUN|RECIPE|JSON")]],
    weights: Annotated[Weights | None, arg(metavar="initial|best|last")] = None,
    images: Images = "training",
    samples: int = 128,
    out: Annotated[Path | None, arg(aliases=["-o"], metavar="JSON")] = None,
    figure: Annotated[Path | None, arg(metavar="PNG")] = None,
    membranes: Annotated[Path | None, arg(metavar="PNG")] = None,
    device: str = "auto",
    data_root: DataRoot = None,
) -> None:
    """Look at every layer: spikes, membranes, windows, and how the gradient comes down.

    One forward and backward of the recipe's loss on a batch, as in training. Of trained runs, or
    of recipes as they start, also with other fields:
      quadspike layers runs/qif runs/lif --figure layers.png
      quadspike layers runs/qif --weights initial
      quadspike layers runs/qif runs/lif --membranes membranes.png
      quadspike layers digits-cnn digits-cnn:window=mean,eta=0.5
      quadspike layers records/layers/study-window-h200.json --figure layers.png

    Args:
        subjects: Folders that training wrote, or recipes, RECIPE or RECIPE:FIELD=VALUE,...; or
            what --out has written before, to be shown again.
        weights: A run's last unless said otherwise; a recipe's initial.
        images: Training images as an epoch shows them, or those held out.
        samples: How many images.
        out: Also write all numbers to this file.
        figure: Also draw gradients, windows and rates by depth (.png, .svg or .pdf).
        membranes: Also draw the membranes of every layer as histograms, with the surrogate's window
            and the threshold; of two networks at most.
        device: auto, cpu, cuda or cuda:N.
    """
    from functools import partial

    from quadspike.analysis.figures.depth import draw_depth
    from quadspike.analysis.figures.layer_membranes import check_overlay, draw_membranes
    from quadspike.analysis.figures.saving import figure_format, write_figure
    from quadspike.analysis.layer_files import read_layers, write_layers
    from quadspike.analysis.layer_tables import layer_tables
    from quadspike.atomic import check_file
    from quadspike.errors import QuadspikeError
    from quadspike.examine import examine_layers

    if not subjects:
        raise QuadspikeError("name a run's folder or a recipe: quadspike layers digits-cnn")
    for file in filter(None, (out, figure, membranes)):
        check_file(file)
    for picture in filter(None, (figure, membranes)):
        figure_format(picture)
    if membranes is not None:
        check_overlay(len(subjects))
    found = []
    for subject in subjects:
        if subject.endswith(".json"):
            if weights is not None:
                raise QuadspikeError(
                    f"{subject} holds what was seen of its weights then; leave --weights out"
                )
            networks = read_layers(Path(subject))
        else:
            look = partial(examine_layers, weights=weights, images=images, samples=samples)
            networks = [look(subject, device=device, data_root=data_root)]
            if (seen := networks[0]["samples"]) < samples:
                print(
                    f"{subject} has {seen:,} {images} images an epoch, fewer than the "
                    f"{samples:,} asked for\n"
                )
        for network in networks:
            print(layer_tables(network), end="\n\n")
        found += networks
    if out is not None:
        write_layers(found, out)
    if figure is not None:
        write_figure(draw_depth(found), figure)
    if membranes is not None:
        write_figure(draw_membranes(found), membranes)
