"""`quadspike compare`."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.table import Table
from tyro.conf import Positional, UseAppendAction, arg

from quadspike.cli.console import make_console
from quadspike.cli.options import DataRoot

if TYPE_CHECKING:
    from rich.console import Console

    from quadspike.comparison.grid import Grid
    from quadspike.methods import Method
    from quadspike.training import Recipe


def compare(
    recipe: Positional[Annotated[str, arg(metavar="RECIPE")]] = "digits-cnn-short",
    methods: UseAppendAction[
        Annotated[tuple[tuple[str, ...], ...], arg(metavar="METHOD ...")]
    ] = (),
    epochs: Annotated[int | None, arg(metavar="INT")] = None,
    timesteps: Annotated[int | None, arg(metavar="INT")] = None,
    seeds: int = 1,
    out: Annotated[Path | None, arg(metavar="PATH")] = None,
    device: str = "auto",
    data_root: DataRoot = None,
    list_: Annotated[bool, arg(name="list")] = False,
    dry_run: bool = False,
) -> None:
    """Train methods of the literature under one recipe and put them into one table.

    Every method gets the same network, data, epochs and seeds; what it changes is in
    docs/methods.md. Without anything said, all methods on the packaged digits, on a CPU, in
    minutes:
      quadspike compare
      quadspike compare --methods qif stbp-tdbn tet plif --seeds 3
      quadspike compare cifar10-resnet19 --epochs 2 --out runs/cifar10-methods
      quadspike compare cifar10-resnet19 --epochs 2 --dry-run

    Runs lie in OUT/METHOD/seed-N, the table (Markdown, CSV, LaTeX), the record and a picture in
    OUT. The same command again goes on where it was stopped. A method that fails is noted with
    its reason (exit code 1); to try it again delete OUT/METHOD/seed-N.json.

    Args:
        recipe: What all methods have in common (see `quadspike recipes`).
        methods: Which methods (see --list); all without it.
        epochs: Epochs of every run; the recipe's own otherwise.
        timesteps: Steps of every run; the recipe's own otherwise.
        seeds: Runs of each method, each with another seed.
        out: Where everything goes; runs/compare-RECIPE otherwise.
        device: auto, cpu, cuda or cuda:N.
        list_: Name every method with one line, and do nothing.
        dry_run: Say what it would take, and train nothing.
    """
    from quadspike.comparison import choose_methods
    from quadspike.comparison import compare as run
    from quadspike.comparison.grid import grid
    from quadspike.errors import check_count
    from quadspike.recipes import create_recipe

    console = make_console(lasting=not (list_ or dry_run))
    if list_:
        console.print(_list())
        return
    asked = {"epochs": epochs, "timesteps": timesteps}
    common = create_recipe(recipe, **{k: v for k, v in asked.items() if v is not None})
    chosen = choose_methods(chain.from_iterable(methods))
    check_count("seeds", seeds)
    folder = out or Path("runs") / f"compare-{recipe}"
    if dry_run:
        _dry_run(common, chosen, seeds, folder, device)
        return
    from quadspike.cli.board import Board

    board = Board(console)
    try:
        found = run(
            common,
            [method.key for method in chosen],
            seeds=seeds,
            out=folder,
            device=device,
            data_root=data_root,
            watcher=board,
        )
    finally:
        board.close()
    print()
    _show(console, grid(found))
    tables = "table.md, table.csv, table.tex"
    print(f"\n{tables}, accuracy_energy.png, its .svg and comparison.json are in {folder}")
    if found.exit_code:
        raise SystemExit(found.exit_code)


def _list() -> Table:
    from quadspike.methods import METHODS

    table = Table(box=None, header_style="bold")
    table.add_column("method", no_wrap=True)
    table.add_column("changes", no_wrap=True)
    table.add_column("what it is")
    for method in METHODS.values():
        reconstructed = " (a reconstruction)" if method.status == "reconstruction" else ""
        table.add_row(method.key, method.kind, f"{method.title}: {method.line}{reconstructed}")
    return table


def _show(console: Console, shown: Grid) -> None:
    """The table as far as it fits into a terminal, the whole one elsewhere, and its notes."""
    from quadspike.comparison.grid import marks_of

    count = len(shown.headings)
    if console.is_terminal:
        unbounded = make_console(at_least=1000)
        while count > 2 and unbounded.measure(_table(shown, count)).maximum > console.width:
            count -= 1
    else:
        console = make_console(at_least=160)
    console.print(_table(shown, count), markup=False)
    if count < len(shown.headings):
        print(f"too wide for this terminal, in table.md: {'; '.join(shown.headings[count:])}")
    marks = {mark for row in shown.rows for cell in row[:count] for mark in marks_of(cell)}
    notes = [f"({mark}) {text}" for mark, text in shown.notes if mark in marks]
    for remark in (*shown.remarks, *notes):
        print(remark)


def _table(shown: Grid, count: int) -> Table:
    """Its first so many columns."""
    table = Table(box=None, header_style="bold", title=shown.title, title_justify="left")
    for number, heading in enumerate(shown.headings[:count]):
        table.add_column(heading, justify="right" if number else "left", overflow="fold")
    for row in shown.rows:
        table.add_row(*row[:count])
    return table


def _dry_run(common: Recipe, methods: Iterable[Method], seeds: int, out: Path, device: str) -> None:
    from quadspike.cli.estimates import show_estimates
    from quadspike.comparison.jobs import ComparisonFolder, plan
    from quadspike.training.queue import only_place

    ComparisonFolder(out).check(common, resume=True)
    place = only_place("comparison", device)
    jobs = plan(common, methods, seeds, out)
    show_estimates("method", [(job.method.key, job) for job in jobs], place)
