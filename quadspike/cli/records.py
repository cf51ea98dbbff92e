"""`quadspike records add | verify | table | figure | export | evaluate`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from quadspike.cli.options import DataRoot
from quadspike.written import counted

if TYPE_CHECKING:
    from quadspike.records import Repository, Store
    from quadspike.records.store import Files, Kind
    from quadspike.sweeps import SweepFolder

Folder = Annotated[Path, arg(metavar="FOLDER")]
ROOT = Path("records")


def add(
    run: Positional[Annotated[Path, arg(metavar="RUN")]],
    name: Annotated[str | None, arg(metavar="NAME")] = None,
    export: Annotated[Path | None, arg(metavar="DIR")] = None,
    note: str = "",
    records: Folder = ROOT,
) -> None:
    """Keep a finished run, a comparison or the runs of a sweep as records: text, no weights.

    For example:
      quadspike records add runs/cifar10-resnet19-qif-t2-seed0
      quadspike records add runs/mean --name window/mean-seed0 --note "chosen on held-out images"
      quadspike records add runs/full --export weights/full
      quadspike records add runs/compare-digits-cnn-short --name digits
      quadspike records add runs/sweep-digits-mlp --name neurons

    What is not finished, does not add up, or was not made with the source of a commit of this
    repository is refused with the reason. Of a sweep every finished run is kept, in the group
    NAME; exit code 1 if one of them is refused.

    Args:
        run: The folder of a run, of a comparison, or of a sweep.
        name: What to call it, or GROUP/NAME; the folder's name otherwise.
        export: Weights of this run from `records export`, scored: their score is the headline.
        note: A line about it, such as on which data its recipe was chosen.
        records: The folder of records, inside the repository of the code.
    """
    from quadspike.comparison.jobs import ComparisonFolder
    from quadspike.errors import QuadspikeError
    from quadspike.records import Repository, Store, record_comparison, record_run
    from quadspike.sweeps import SweepFolder

    store, called = Store(records), name or run.resolve().name
    repository = Repository(records if records.is_dir() else records.absolute().parent)
    sweep, compared = SweepFolder(run), ComparisonFolder(run).record.exists()
    if export is not None and (compared or sweep.listing.exists()):
        raise QuadspikeError(f"{run} holds several runs, --export is for one; leave that out")
    if sweep.listing.exists():
        _add_sweep(sweep, called, store, repository, note)
        return
    kind: Kind = "compare" if compared else "runs"
    store.folder(kind, called)  # a name that is none is refused before any work
    if compared:
        files = record_comparison(run, repository, note)
    else:
        files = record_run(run, repository, export, note)
    print(_written(store, kind, called, files))


def _written(store: Store, kind: Kind, name: str, files: Files) -> str:
    """Keep a record; a line about it."""
    folder, size = store.folder(kind, name), sum(map(len, files.values())) / 1024
    if store.write(kind, name, files):
        return f"{folder}: {size:.1f} KB"
    return f"{folder} is there already, the same"


def _add_sweep(
    sweep: SweepFolder, group: str, store: Store, repository: Repository, note: str
) -> None:
    """A line for each run; what is refused costs the others nothing."""
    from quadspike.errors import QuadspikeError
    from quadspike.records import record_run

    refused = False
    for state in sweep.states():
        name = f"{group}/{state.name}"
        store.folder("runs", name)
        if state.failure:
            print(f"{state.name} is left out, it failed: {state.failure}")
        elif state.record is None:
            print(f"{state.name} is left out, it is not finished")
        else:
            try:
                files = record_run(sweep.path / state.name, repository, None, note)
                print(_written(store, "runs", name, files))
            except QuadspikeError as error:
                refused = True
                print(error)
    if refused:
        raise SystemExit(1)


def verify(records: Folder = ROOT) -> None:
    """Recompute every record, one line each; exit code 1 if one does not hold.

    A record holds if its files are those of its SHA256SUMS, its summary follows from its epochs
    and layers, its recipe is valid, its weights are named by their SHA-256, and its commit is in
    this repository with just the source that made it.

    Args:
        records: The folder of records, inside the repository of the code.
    """
    from quadspike.records import Store
    from quadspike.records import verify as check

    count, failed = 0, 0
    for verdict in check(Store(records)):
        count += 1
        failed += bool(verdict.problem)
        said = f"FAILS: {verdict.problem}" if verdict.problem else f"holds: {verdict.line}"
        print(f"{verdict.kind}/{verdict.name} {said}")
    print(f"{count} records, {failed} of them fail" if count else f"no records in {records}")
    if failed:
        raise SystemExit(1)


def table(
    group: Positional[Annotated[str, arg(metavar="GROUP")]] = "",
    write: Annotated[tuple[Path, ...], arg(metavar="PAGE")] = (),
    records: Folder = ROOT,
) -> None:
    """Print the table of the runs on record in Markdown, beside the paper's figures.

    For example:
      quadspike records table
      quadspike records table study-window
      quadspike records table fastest
      quadspike records table --write README.md

    Seeds of the same recipe are one row. A group's table has a column for every field in which
    its runs differ. fastest lists, by time, the runs that meet the rules of docs/speedrun.md,
    and says of others whose weights were exported why they are not listed.

    A page holds a table between the lines <!-- records --> (or <!-- records GROUP -->) and
    <!-- /records -->.

    Args:
        group: Only the runs of that group; those in none otherwise. Or fastest.
        write: Pages to put their tables into, instead of printing one.
        records: The folder of records.
    """
    from quadspike.errors import QuadspikeError
    from quadspike.records import Store, fill_page, not_listed
    from quadspike.records import table as make
    from quadspike.records.store import FASTEST

    if group and write:
        raise QuadspikeError(f"--write puts every table of a page into it; leave {group} out")
    store = Store(records)
    store.check()
    if not write:
        print(make(store, group), end="")
    if group == FASTEST:
        for line in not_listed(store):
            print(line, file=sys.stderr)
    for page in write:
        print(f"{page}: {'made anew' if fill_page(page, store) else 'up to date'}")


def figure(
    groups: Positional[Annotated[tuple[str, ...], arg(metavar="GROUP")]] = (),
    *,
    out: Annotated[Path, arg(aliases=["-o"], metavar="PNG")],
    x: Annotated[str | None, arg(metavar="FIELD")] = None,
    records: Folder = ROOT,
) -> None:
    """Draw the runs of groups: how they learn, or what they come to by a field of the recipe.

    For example:
      quadspike records figure --out accuracy.png
      quadspike records figure study-window --out window.png
      quadspike records figure study-window study-threshold --x window --out centres.svg
      quadspike records figure study-window --x agreement --out agreement.png

    Accuracy is on the held-out images where every run has them, else on the test set. Seeds of
    the same recipe are one line, through their mean. Without a group: the runs that are in none,
    their accuracy against their time, beside the paper's.

    Args:
        groups: Drawn together, if several.
        out: The file: .png, .svg or .pdf.
        x: Accuracy after the last epoch against that field, instead of learning curves; or
            against the agreement of the surrogate with the slope it stands for (docs/neuron.md).
        records: The folder of records.
    """
    from quadspike.analysis.figures.saving import figure_format, write_figure
    from quadspike.errors import QuadspikeError
    from quadspike.records import (
        AGREEMENT,
        Store,
        accuracy_against_time,
        against,
        by_agreement,
        curves,
        draw,
        read_groups,
        ungrouped,
    )

    figure_format(out)
    store = Store(records)
    store.check()
    if not groups:
        if x is not None:
            raise QuadspikeError(f"--x {x} is for the runs of a group: name one")
        runs = ungrouped(store)
        write_figure(accuracy_against_time(runs), out)
        print(f"{out}: {counted(len(runs), 'run')} beside the paper's")
        return
    runs = read_groups(store, groups)
    plot = curves(runs) if x is None else by_agreement(runs) if x == AGREEMENT else against(runs, x)
    write_figure(draw(plot), out)
    print(f"{out}: {counted(len(runs), 'run')} in {counted(len(plot.series), 'line')}")


def export(
    run: Positional[Annotated[Path, arg(metavar="RUN")]],
    out: Annotated[Path, arg(metavar="DIR")],
    shard_mib: Annotated[float, arg(metavar="MIB")] = 15.0,
) -> None:
    """Write a run's last weights in half precision, in safetensors files of a limited size.

    For example:
      quadspike records export runs/full --out weights/full
      quadspike records evaluate weights/full
      quadspike records add runs/full --export weights/full

    Weights of synapses become bfloat16 after training in bf16, where that changes no logit, and
    else float16; everything else stays in float32. Keep the folder outside the repository.

    Args:
        run: The run's folder.
        out: A new folder.
        shard_mib: The largest size of a file.
    """
    from quadspike.records import export as write

    index = write(run, out, shard_mib)
    size = index["bytes"] / (1 << 20)
    files = counted(len(index["files"]), "file")
    print(f"{out}: {size:.1f} MiB of {index['dtype']} in {files}")
    again = f"quadspike records evaluate {shlex.quote(str(out))}"
    print(f"SHA-256 of the weights {index['sha256']}; score them: {again}")


def evaluate(
    folder: Positional[Annotated[Path, arg(metavar="DIR")]],
    device: str = "auto",
    backend: str = "auto",
    data_root: DataRoot = None,
    folded: bool = False,
) -> None:
    """Score exported weights on every test sample; the first score is kept beside them.

    Args:
        folder: What `records export` wrote.
        device: auto, cpu, cuda or cuda:N.
        backend: Who computes the somas: auto, reference, vectorised or triton.
        folded: Also score the network as it is deployed, normalisations merged into weights.
    """
    from quadspike.records import evaluate_export

    found = evaluate_export(
        folder, device=device, data_root=data_root, backend=backend, folded=folded
    )
    new = ", kept in evaluation.json"
    before = new if found.kept is None else f" (the score kept is {found.kept:.2%})"
    merged = f", folded {found.folded.accuracy:.2%}" if found.folded else ""
    print(
        f"test accuracy {found.fresh.accuracy:.2%}{before}{merged}, loss {found.fresh.loss:.4f}, "
        f"{found.fresh.count:,} samples, {folder}"
    )
