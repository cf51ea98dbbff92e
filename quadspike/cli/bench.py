"""`quadspike bench`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from quadspike.cli.console import make_console


def bench(
    setting: Positional[Annotated[str, arg(metavar="SETTING")]] = "resnet19",
    what: tuple[str, ...] = ("ceilings", "floor", "step", "profile"),
    only: tuple[str, ...] = (),
    timesteps: Annotated[int | None, arg(metavar="INT")] = None,
    batch: Annotated[int | None, arg(metavar="INT")] = None,
    precision: Annotated[str | None, arg(metavar="STR")] = None,
    device: str = "auto",
    out: Annotated[Path | None, arg(metavar="FILE")] = None,
    smoke: bool = False,
) -> None:
    """Time training steps on random data: ours, the floor under them, and other libraries'.

    What fails says why, and the rest goes on (exit code 1 if --only named it). For example:
      quadspike bench resnet19 --out bench.json
      quadspike bench resnet19 --what peers --only sj-lif-compiled loop --out bench.json
      quadspike bench resnet8 --device cpu --what floor step peers

    Args:
        setting: Which network: resnet19, resnet19-wide, vggsnn, resnet34 or resnet8.
        what: Parts: ceilings, floor, step, profile, epoch, inference, scaling, peers.
        only: Contenders of step and peers to measure; all without it.
        timesteps: Another number of steps than the setting's.
        batch: Another batch than the setting's.
        precision: fp32, bf16 or fp64, instead of the setting's.
        device: auto, cpu, cuda or cuda:N.
        out: A JSON file for the figures; rows measured before stay in it.
        smoke: One quick run of everything, only to see that it works.
    """
    from quadspike.benchmark import Job, Record, describe, find_setting, measure
    from quadspike.benchmark.record import summary_table, surroundings
    from quadspike.training.distributed import Workers, choose_device

    asked = {"timesteps": timesteps, "batch_size": batch, "precision": precision}
    changes = {field: value for field, value in asked.items() if value is not None}
    chosen = find_setting(setting).but(**changes)
    place = choose_device(device, Workers())
    record = Record(out, surroundings(place), smoke)

    failed = False

    def tell(row: dict[str, object]) -> None:
        nonlocal failed
        print(describe(row), flush=True)
        failed |= "error" in row and row["name"] in only

    measure(Job(chosen, place, only, smoke), what, record, tell)
    wide = make_console(at_least=120)
    summary = summary_table(record.comparable, chosen.recipe)
    if summary.rows:
        wide.print(summary)
    if out is not None and "scaling" in what:
        from quadspike.analysis.figures.saving import write_figure
        from quadspike.benchmark.figure import scaling_figure

        drawn = scaling_figure(record.comparable, chosen.recipe)
        write_figure(drawn, out.with_suffix(".scaling.png"))
    if failed:
        raise SystemExit(1)
