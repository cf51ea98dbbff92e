"""`quadspike evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from quadspike.cli.options import DataRoot


def evaluate(
    run: Positional[Annotated[Path, arg(metavar="RUN")]],
    weights: str = "last",
    device: str = "auto",
    backend: str = "auto",
    timesteps: Annotated[int | None, arg(metavar="INT")] = None,
    data_root: DataRoot = None,
) -> None:
    """Repeat a run's evaluation on every test sample, from its saved weights.

    For example:
      quadspike evaluate runs/full
      quadspike evaluate runs/full --timesteps 1

    Args:
        run: The run's folder.
        weights: last or best.
        device: auto, cpu, cuda or cuda:N.
        backend: Who computes the somas: auto, reference, vectorised or triton.
        timesteps: Show static images so many steps instead of the recipe's.
    """
    from quadspike.training import evaluate as repeat

    found = repeat(
        run,
        weights=weights,
        device=device,
        data_root=data_root,
        backend=backend,
        timesteps=timesteps,
    )
    recorded = "" if found.recorded is None else f" (the run noted {found.recorded:.2%})"
    stopped = f"; the run was stopped {found.stopped}" if found.stopped else ""
    print(
        f"test accuracy {found.fresh.accuracy:.2%}{recorded}, loss {found.fresh.loss:.4f}, "
        f"{found.fresh.count:,} samples, {found.weights}{stopped}"
    )
