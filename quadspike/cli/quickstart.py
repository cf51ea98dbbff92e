"""`quadspike quickstart`."""

from __future__ import annotations

import shlex
import time
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Annotated

from rich.table import Table
from tyro.conf import arg

from quadspike.cli.console import make_console
from quadspike.written import capitals


def quickstart(
    out: Annotated[Path | None, arg(metavar="PATH")] = None,
    seeds: int = 3,
    epochs: Annotated[int | None, arg(metavar="INT")] = None,
) -> None:
    """Train QIF and LIF side by side on the packaged digits, on a CPU, in minutes.

    Prints a small table of all seeds and writes a report about the first, with curves, firing
    rates, membranes and energy. The same command with --out goes on where it was stopped.

    Args:
        out: Where runs and report go; a new folder under runs/ otherwise.
        seeds: Runs of each neuron.
        epochs: Epochs of each run; the recipe's own otherwise.
    """
    from quadspike.cli.board import Board
    from quadspike.cli.display import duration, millijoule
    from quadspike.errors import check_count
    from quadspike.recipes import create_recipe
    from quadspike.records.cells import mean_percent
    from quadspike.report import write_report
    from quadspike.sweeps import Ended
    from quadspike.training import Result, train

    console = make_console(lasting=True)
    started = time.monotonic()
    folder = out or Path("runs") / time.strftime("quickstart-%Y%m%d-%H%M%S")
    again = f"quadspike quickstart --out {shlex.quote(str(folder))} --seeds {seeds}"
    again += "" if epochs is None else f" --epochs {epochs}"
    jobs = list(product(range(check_count("seeds", seeds)), ("qif", "lif")))
    results: dict[str, list[Result]] = {}
    board = Board(console, f"go on with {again}")
    try:
        for number, (seed, neuron) in enumerate(jobs, 1):
            recipe = create_recipe("digits-cnn", neuron=neuron, seed=seed)
            recipe = recipe if epochs is None else recipe.but(epochs=epochs)
            name = f"{neuron}-seed{seed}"
            board.next_run(name, number, len(jobs))
            run = train(recipe, out=folder / name, device="cpu", resume=True, observers=[board])
            if run.exit_code:
                raise SystemExit(run.exit_code)
            board.done(Ended.of(name, run.summary))
            results.setdefault(neuron, []).append(run)
    finally:
        board.close()
    table = Table(box=None, header_style="bold")
    for title in ("neuron", "test accuracy", "firing rate", "energy", "time"):
        table.add_column(title, justify="left" if title == "neuron" else "right")
    for neuron, runs in results.items():
        table.add_row(
            capitals(neuron),
            f"{mean_percent([run.summary['test_accuracy'] for run in runs])} %",
            f"{fmean(run.summary['firing_rate'] for run in runs):.3f}",
            millijoule(fmean(run.summary["energy_mj"] for run in runs)),
            duration(fmean(run.summary["seconds"] for run in runs)),
        )
    page = write_report(
        [run.folder for runs in results.values() for run in runs[:1]], folder / "report.html"
    )
    print()
    console.print(table)
    took = duration(time.monotonic() - started)
    table_of = f"means of {seeds} seeds" if seeds > 1 else "one seed"
    print(f"\nLast epoch, {table_of}; {took} in all.")
    print(f"The report shows seed 0 of each neuron. Open it in a browser: {page}")
