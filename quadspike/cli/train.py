"""`quadspike train`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from rich.table import Table
from tyro.conf import arg

from quadspike.cli.asking import ask
from quadspike.cli.console import make_console
from quadspike.cli.display import Display, duration
from quadspike.cli.options import DataRoot
from quadspike.training.constants import one_by_one
from quadspike.training.distributed import asked_workers, choose_device, would_restart
from quadspike.training.plan import estimate
from quadspike.training.recipe import Recipe
from quadspike.training.record import device_name
from quadspike.training.start import train as run
from quadspike.training.stop import OUT_OF_TIME

Place = Annotated[Path | None, arg(metavar="PATH")]


@dataclass(frozen=True)
class Options:
    """How to run it, apart from what is trained.

    Args:
        out: The run's folder; runs/... by name, neuron, steps, loss, aid and seed otherwise.
        device: auto, cpu, cuda or cuda:N.
        resume: Go on from the folder's last checkpoint, if it has one.
        stop_after: Save and end after so many minutes (exit code 75).
        init_from: Weights to start from: a file, or another run's folder.
        checkpoint_minutes: How often to save; 0 for every step.
    """

    out: Place = None
    device: str = "auto"
    data_root: DataRoot = None
    resume: bool = False
    stop_after: Annotated[float | None, arg(metavar="MINUTES")] = None
    init_from: Place = None
    checkpoint_minutes: Annotated[float, arg(metavar="MINUTES")] = 5.0


USUAL = Options()


USAGE = """usage: quadspike train RECIPE [--FIELD VALUE ...]

  quadspike train digits-cnn
  quadspike train cifar10-resnet19 --timesteps 2 --neuron qif --loss tet
  quadspike train cifar10-resnet19 --dry-run
  torchrun --nproc-per-node 4 -m quadspike train imagenet-resnet34"""


def train(arguments: list[str]) -> None:
    """Parse, train, show; a run that was stopped ends with its own exit code."""
    does = "Train; everything lies in the run's folder afterwards."
    asked = ask("train", arguments, USUAL, USAGE, does)
    if asked is None:
        return
    if asked.dry_run:
        _dry_run(asked.recipe, asked.options.device)
    else:
        _train(asked.recipe, asked.options)


def _train(recipe: Recipe, options: Options) -> None:
    display = Display()
    try:
        result = run(recipe, **asdict(options), observers=[display])
    finally:
        display.close()
    if result.exit_code and not (result.exit_code == OUT_OF_TIME and would_restart()):
        raise SystemExit(result.exit_code)


def _dry_run(recipe: Recipe, device: str) -> None:
    workers = asked_workers()
    place = choose_device(device, workers)
    plan = estimate(recipe, place, workers)
    if not workers.first:
        return
    table = Table("field", "value", box=None, header_style="bold")
    for field, value in one_by_one(recipe.as_dict()).items():
        table.add_row(field, str(value))
    make_console().print(table, markup=False)
    print(
        f"\n{plan.parameters:,} parameters; {plan.steps:,} steps, {plan.steps_per_epoch:,} an "
        f"epoch\nabout {duration(plan.seconds)} of steps on {device_name(place)} (timed on "
        f"random samples) and {plan.memory_gib:.2f} GiB of memory"
    )
