"""`quadspike data list | verify | show | simulate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from rich.console import Console
from rich.table import Table
from tyro.conf import Positional, arg

from quadspike.data.progress import progress_bar

Root = Annotated[Path | None, arg(metavar="FOLDER")]


def list_(data: Root = None) -> None:
    """List the data sets, what to put where, and whether something is there.

    Args:
        data: The folder of data sets; else QUADSPIKE_DATA, else one in the user's cache.
    """
    from quadspike.data.catalog import CATALOG
    from quadspike.data.root import data_root

    table = Table("data set", "what it is", "what to put there", box=None, header_style="bold")
    for name, entry in CATALOG.items():
        table.add_row(name, entry.what, entry.place or "nothing")
    console = Console()
    console.print(table)
    console.print(f"\nData root: {data_root(data)} (--data FOLDER or QUADSPIKE_DATA changes it)")
    console.print("`quadspike data verify` says what is there and whole.")


def verify(names: Positional[tuple[str, ...]] = (), data: Root = None) -> None:
    """Read every file of the named data sets, or of all, and say what is there and whole.

    Ends with exit code 1 if a named data set is missing or broken.

    Args:
        names: Data sets (see `quadspike data list`); all of them without a name.
        data: The folder of data sets; else QUADSPIKE_DATA, else one in the user's cache.
    """
    from quadspike.data import catalog

    table = Table("data set", "whole", "found", "problem", box=None, header_style="bold")
    broken = False
    for name in names or catalog.CATALOG:
        with progress_bar(name) as progress:
            result = catalog.verify(name, data, progress)
        broken |= not result.whole
        table.add_row(name, "yes" if result.whole else "no", result.found, result.problem or "")
    Console().print(table)
    if names and broken:
        raise SystemExit(1)


def show(
    name: Positional[Annotated[str, arg(metavar="NAME")]],
    out: Positional[Annotated[Path, arg(metavar="OUT.png")]],
    count: int = 8,
    seed: int = 0,
    data: Root = None,
) -> None:
    """Draw a contact sheet: samples before and after augmentation, events as strips of frames.

    Args:
        name: A data set (see `quadspike data list`).
        out: The picture to write: .png, .svg or .pdf.
        count: How many samples.
        seed: Which samples, and which augmentation.
        data: The folder of data sets; else QUADSPIKE_DATA, else one in the user's cache.
    """
    from quadspike.analysis.sheet import contact_sheet, save_sheet
    from quadspike.data.catalog import preview
    from quadspike.errors import check_count

    split, augmentation = preview(name, data, check_count("count", count))
    print(save_sheet(contact_sheet(split, augmentation, count, seed=seed), out))


def simulate(
    dataset: Positional[Annotated[str, arg(metavar="DATASET")]],
    out: Positional[Annotated[Path, arg(metavar="FOLDER")]],
    per_class: int = 1000,
    seed: int = 0,
    batch: Annotated[int | None, arg(metavar="INT")] = None,
    device: str = "cpu",
    data: Root = None,
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
        data: The folder of data sets; else QUADSPIKE_DATA, else one in the user's cache.
        real: AEDAT recordings whose statistics are printed beside the simulated ones.
    """
    from quadspike.data.catalog import preview
    from quadspike.data.events.aedat import read_aedat
    from quadspike.data.events.camera_report import recordings_table
    from quadspike.data.simulate import simulate as record
    from quadspike.errors import check_name

    check_name("image data set", dataset, ("cifar10", "cifar100", "digits"))
    split, _ = preview(dataset, data)
    with progress_bar(f"{dataset} (simulated)") as progress:
        images = split.to(device)
        record(images, out, seed=seed, per_class=per_class, batch=batch, progress=progress)
    some = sorted(out.glob("*/*.aedat"))[:: max(1, per_class // 10)]
    simulated = [read_aedat(path) for path in some]
    recordings = {path.stem: read_aedat(path) for path in real}
    Console().print(recordings_table(simulated, recordings))
