"""`quadspike layers`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

Weights = Literal["initial", "best", "last"]
Images = Literal["training", "held-out"]


def layers(
    subjects: Positional[Annotated[tuple[str, ...], arg(metavar="RUN|RECIPE")]],
    weights: Annotated[Weights | None, arg(metavar="initial|best|last")] = None,
    images: Images = "training",
    samples: int = 128,
    out: Annotated[Path | None, arg(aliases=["-o"], metavar="JSON")] = None,
    figure: Annotated[Path | None, arg(metavar="PNG")] = None,
    device: str = "auto",
    data_root: Annotated[Path | None, arg(metavar="PATH")] = None,
) -> None:
    """Look at every layer: spikes, membranes, windows, and how the gradient comes down.

    One forward and backward of the recipe's loss on a batch, as in training. Of trained runs, or
    of recipes as they start, also with other fields:

      quadspike layers runs/qif runs/lif --figure layers.png

      quadspike layers runs/qif --weights initial

      quadspike layers digits-cnn digits-cnn:window=mean,eta=0.5

    Args:
        subjects: Folders that training wrote, or recipes, RECIPE or RECIPE:FIELD=VALUE,...
        weights: A run's last unless said otherwise; a recipe's initial.
        images: Training images as an epoch shows them, or those held out.
        samples: How many images.
        out: Also write all numbers to this file.
        figure: Also draw gradients, windows and rates by depth (.png, .svg or .pdf).
        device: auto, cpu, cuda or cuda:N.
        data_root: Where the data sets are; $QUADSPIKE_DATA or ./data otherwise.
    """
    import json

    from quadspike.analysis.figures.depth import draw_depth
    from quadspike.analysis.figures.saving import figure_format, write_figure
    from quadspike.analysis.layer_tables import layer_tables
    from quadspike.atomic import write_text
    from quadspike.errors import QuadspikeError
    from quadspike.training.examine import examine_layers

    if not subjects:
        raise QuadspikeError("name a run's folder or a recipe: quadspike layers digits-cnn")
    if figure is not None:
        figure_format(figure)
    found = []
    for subject in subjects:
        found.append(
            examine_layers(
                subject,
                weights=weights,
                images=images,
                samples=samples,
                device=device,
                data_root=data_root,
            )
        )
        print(layer_tables(found[-1]), end="\n\n")
    if out is not None:
        write_text(out, json.dumps({"format": 1, "networks": found}, indent=1) + "\n")
    if figure is not None:
        write_figure(draw_depth(found), figure)
