"""`quadspike sweep`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import UseAppendAction, arg

from quadspike.cli.asking import Asked, ask
from quadspike.cli.board import Board
from quadspike.cli.console import make_console
from quadspike.cli.estimates import show_estimates
from quadspike.cli.options import DataRoot
from quadspike.errors import check_count
from quadspike.sweeps import SweepFolder, plan, settings
from quadspike.sweeps import sweep as run
from quadspike.training.fields import parse_fields, parse_values
from quadspike.training.queue import only_place
from quadspike.training.stop import OUT_OF_TIME, describe

Given = tuple[tuple[str, ...], ...]
Place = Annotated[Path | None, arg(metavar="PATH")]


@dataclass(frozen=True)
class Options:
    """What varies, and how to run it.

    Args:
        over: Values of a field; every combination of all fields given is trained.
        also: Single settings beside those; without --over these alone.
        seeds: Runs of each setting, each with another seed, from --seed on.
        out: Where everything goes; runs/sweep-RECIPE otherwise.
        device: auto, cpu, cuda or cuda:N.
        stop_after: Save and end after so many minutes in all (exit code 75).
    """

    over: UseAppendAction[Annotated[Given, arg(metavar="FIELD=V1,V2 ...")]] = ()
    also: UseAppendAction[Annotated[Given, arg(metavar="FIELD=V,FIELD=V ...")]] = ()
    seeds: int = 1
    out: Place = None
    device: str = "auto"
    data_root: DataRoot = None
    stop_after: Annotated[float | None, arg(metavar="MINUTES")] = None


USUAL = Options()

USAGE = """usage: quadspike sweep RECIPE [--FIELD VALUE ...] --over FIELD=V1,V2,...

Train a recipe with other values of its fields, one run after the other in one
process.

  quadspike sweep digits-mlp --over neuron=qif,lif timesteps=2,4
  quadspike sweep digits-mlp --over window=threshold,mean eta=0.5,1 --seeds 2
  quadspike sweep digits-mlp --over neuron.a=0.2,0.25,0.3 neuron.u_th=0.5,0.6
  quadspike sweep digits-mlp --epochs 5 --over lr=0.01,0.02 --out runs/lr
  quadspike sweep digits-mlp --also window=mean,lr=0.02 optimizer=sgd,lr=0.5
  quadspike sweep digits-mlp --over neuron=qif,lif --dry-run

--over trains every combination, --also each setting it names, and --FIELD is
common to all. A value is a number, true, false, null or a name. Every setting
is checked before the first run.

A run lies in OUT/NAME-seedN, such as window-mean_eta-0.5-seed0, as any other
run does; OUT/table.md is the table of all, OUT/curves.png how they learned.
The same command goes on where it was stopped, and with more values trains only
those. A run that fails is noted with its reason (exit code 1); to try it again
delete OUT/NAME-seedN.json. quadspike records add OUT keeps what is finished."""


def sweep(arguments: list[str]) -> None:
    """Parse, train, show; exit code 1 if a run failed, that of the stop if it was stopped."""
    does = """Train a recipe with other values of its fields, one run after the other.

    Runs lie in OUT/NAME-seedN, the table and the learning curves in OUT. The same command goes on
    where it was stopped, and with more values runs only those. See `quadspike sweep --help`.
    """
    asked = ask("sweep", arguments, USUAL, USAGE, does)
    if asked is None:
        return
    options = asked.options
    over: dict[str, list[Any]] = {}
    for text in (text for group in options.over for text in group):
        field, values = parse_values(text)
        over.setdefault(field, []).extend(values)
    also = [parse_fields(text) for group in options.also for text in group]
    out = options.out or Path("runs") / f"sweep-{asked.name}"
    if asked.dry_run:
        _dry_run(asked, over, also, out)
        return
    board = Board(make_console(lasting=True))
    try:
        found = run(
            asked.recipe,
            over,
            also,
            out=out,
            seeds=options.seeds,
            device=options.device,
            data_root=options.data_root,
            stop_after=options.stop_after,
            watcher=board,
        )
    finally:
        board.close()
    print(f"\n{found.table}")
    said = f"everything is in {out}"
    if found.exit_code == OUT_OF_TIME:
        said = f"stopped because {describe(found.exit_code)}: the same command goes on; {said}"
    print(said)
    if found.exit_code:
        raise SystemExit(found.exit_code)


def _dry_run(
    asked: Asked[Options], over: dict[str, list[Any]], also: list[dict[str, Any]], out: Path
) -> None:
    chosen, folder = settings(asked.recipe, over, also), SweepFolder(out)
    folder.check(asked.recipe, resume=True)
    place = only_place("sweep", asked.options.device)
    jobs = plan(chosen, check_count("seeds", asked.options.seeds), folder)
    show_estimates("setting", [(job.setting.name, job) for job in jobs], place)
