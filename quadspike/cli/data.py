"""`quadspike data list | verify | show | download | simulate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from rich.markup import escape
from rich.table import Table
from tyro.conf import Positional, arg

from quadspike.cli.console import make_console
from quadspike.cli.options import DataRoot

MOST = 40


def list_(data_root: DataRoot = None) -> None:
    """List the data sets and what to put where."""
    from quadspike.data.catalog import CATALOG
    from quadspike.data.root import data_root as find

    table = Table("data set", "what it is", "what to put there", box=None, header_style="bold")
    for name, entry in CATALOG.items():
        table.add_row(name, entry.what, entry.place or "nothing")
    make_console(at_least=80).print(table)
    changes = "--data-root FOLDER or QUADSPIKE_DATA changes it"
    print(f"\nData root: {find(data_root)} ({changes})")
    print("`quadspike data verify` says what is there and whole.")


def verify(names: Positional[tuple[str, ...]] = (), data_root: DataRoot = None) -> None:
    """Read every file of the named data sets, or of all, and say what is there and whole.

    Ends with exit code 1 if one is broken, or a named one is missing.

    Args:
        names: Data sets (see `quadspike data list`); all of them without a name.
    """
    from quadspike.cli.bar import progress_bar
    from quadspike.data import catalog
    from quadspike.errors import check_name

    for name in names:
        check_name("data set", name, catalog.CATALOG)
    table = Table("data set", "whole", "found", box=None, header_style="bold")
    results = []
    for name in names or catalog.CATALOG:
        with progress_bar(name) as progress:
            results.append(catalog.verify(name, data_root, progress))
        table.add_row(name, "yes" if results[-1].whole else "no", escape(results[-1].found))
    make_console().print(table)
    for result in results:
        if result.problem:
            print(f"\n{result.name}: {result.problem}")
    if any(not result.whole and (names or result.found != "nothing") for result in results):
        raise SystemExit(1)


def download(
    name: Positional[Annotated[str, arg(metavar="NAME")]], data_root: DataRoot = None
) -> None:
    """Fetch a data set that may be fetched; resumed where it broke off, and checked.

    Args:
        name: cifar10 or cifar100.
    """
    from quadspike.cli.bar import progress_bar
    from quadspike.data.cifar import load_cifar10, load_cifar100
    from quadspike.errors import check_name

    loads = {"cifar10": load_cifar10, "cifar100": load_cifar100}
    load = loads[check_name("data set to download", name, loads)]
    with progress_bar(name, of_bytes=True) as progress:
        train, test = load(data_root, download=True, progress=progress)
    print(f"{name}: {len(train):,} training and {len(test):,} test images, checked")


def show(
    name: Positional[Annotated[str, arg(metavar="NAME")]],
    out: Positional[Annotated[Path, arg(metavar="OUT.png")]],
    count: int = 8,
    seed: int = 0,
    data_root: DataRoot = None,
) -> None:
    """Draw a contact sheet: samples before and after augmentation, events as strips of frames.

    Args:
        name: A data set (see `quadspike data list`).
        out: The picture to write: .png, .svg or .pdf.
        count: How many samples.
        seed: Which augmentation, and which samples of a set that is held in memory.
    """
    from quadspike.analysis.figures.saving import figure_format, write_figure
    from quadspike.analysis.sheet import contact_sheet
    from quadspike.data.catalog import preview
    from quadspike.errors import QuadspikeError, check_count

    figure_format(out)
    if check_count("count", count) > MOST:
        raise QuadspikeError(f"a contact sheet shows at most {MOST} samples, got {count}")
    split, augmentation = preview(name, data_root, count)
    write_figure(contact_sheet(split, augmentation, count, seed=seed), out, dpi=130)
    print(out)


def simulate(
    dataset: Positional[Annotated[str, arg(metavar="DATASET")]],
    out: Positional[Annotated[Path, arg(metavar="FOLDER")]],
    per_class: int = 1000,
    seed: int = 0,
    batch: Annotated[int | None, arg(metavar="INT")] = None,
    device: str = "cpu",
    data_root: DataRoot = None,
    real: tuple[Path, ...] = (),
) -> None:
    """Record an image data set by a simulated event camera, in CIFAR10-DVS's protocol and layout.

    The recordings are AEDAT 2.0 files, always named simulated. An interrupted run goes on
    where it stopped.

    Args:
        dataset: cifar10, cifar100 or digits: the first images of each class in training order.
        out: The folder to write to.
        per_class: How many images of each class.
        seed: Everything random follows from it.
        batch: Recordings computed at a time; 256, or 16 on a CPU, without it.
        device: Where to compute: cpu, cuda, cuda:1, ...
        real: AEDAT recordings whose statistics are printed beside the simulated ones.
    """
    from quadspike.cli.bar import progress_bar
    from quadspike.data.catalog import preview
    from quadspike.data.events.aedat import read_aedat
    from quadspike.data.events.statistics import recordings_table
    from quadspike.data.simulate import simulate as record
    from quadspike.errors import check_device, check_name

    check_name("image data set", dataset, ("cifar10", "cifar100", "digits"))
    where = check_device(device)
    recordings = [(path.stem, read_aedat(path, backwards="sort")) for path in real]
    split, _ = preview(dataset, data_root)
    with progress_bar(f"{dataset} (simulated)") as progress:
        images = split.to(where)
        record(images, out, seed=seed, per_class=per_class, batch=batch, progress=progress)
    some = sorted(out.glob("*/*.aedat"))[:: max(1, per_class // 10)]
    simulated = [read_aedat(path) for path in some]
    make_console().print(recordings_table(simulated, recordings))
