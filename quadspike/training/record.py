"""What a finished run leaves: a record that anyone can check and repeat."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

import torch
from torch import Tensor

import quadspike
from quadspike.analysis.energy import EnergyReport, energy
from quadspike.analysis.layers import describe_layers
from quadspike.atomic import write_text
from quadspike.data.geometry import Geometry
from quadspike.errors import QuadspikeError
from quadspike.models import Network
from quadspike.training.folder import FORMAT
from quadspike.written import counted


def environment(device: torch.device, workers: int) -> dict[str, Any]:
    """What the run was made with and on; its code as a process finds it when it first asks.

    Later the files may be others, in the midst of a sweep: what runs are those it has read.
    """
    commit, clean = code_version()
    return {
        "quadspike": quadspike.__version__,
        "commit": commit,
        "clean": clean,
        "source": source_fingerprint(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "triton": version_of("triton"),
        "cuda": torch.version.cuda if device.type == "cuda" else None,
        "device": device_name(device),
        "workers": workers,
        "system": f"{platform.system()} {platform.machine()}",
    }


def made_on(environment: Mapping[str, Any]) -> str:
    """The device and the code of an `environment`, in words that tell one from another."""
    commit, source = environment["commit"], environment["source"][:10]
    code = f" at {commit[:10]}" if commit else f", source {source}"
    if commit and not environment["clean"]:
        code += f" with changes, source {source}"
    versions = f"torch {environment['torch']}, quadspike {environment['quadspike']}"
    return f"{environment['device']}, {versions}{code}"


def device_name(device: torch.device) -> str:
    """A GPU by its name, a CPU with its threads."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"CPU, {counted(torch.get_num_threads(), 'thread')}"


@cache
def code_version() -> tuple[str | None, bool | None]:
    """The commit of the code that runs and whether it is unchanged; None where git knows none."""
    here = Path(quadspike.__file__).parent

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(here), *arguments], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    try:
        git("ls-files", "--error-unmatch", "__init__.py")  # ours, not a checkout around us
        return git("rev-parse", "HEAD"), not git("status", "--porcelain", "--", str(here))
    except (OSError, subprocess.CalledProcessError):
        return None, None


@cache
def source_fingerprint() -> str:
    """SHA-256 over the package's own source: names the code even where git is not at hand."""
    here = Path(quadspike.__file__).parent
    found = here.rglob("*.py")
    return fingerprint({path.relative_to(here).as_posix(): path.read_bytes() for path in found})


def fingerprint(files: Mapping[str, bytes]) -> str:
    """SHA-256 over files by their paths within a folder, whatever order they are given in."""
    digest = hashlib.sha256()
    for path in sorted(files, key=PurePosixPath):
        digest.update(f"{path}\0".encode())
        digest.update(files[path])
    return digest.hexdigest()


def version_of(package: str) -> str | None:
    """Of an installed package; None where there is none."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def measure(model: Network, geometry: Geometry, inputs: Tensor) -> dict[str, Any]:
    """Firing and energy of a trained network on a batch of test samples."""
    layers = describe_layers(model, inputs)
    steps = model.timesteps if geometry.static else inputs.shape[0]
    try:
        bill = energy(model, geometry, timesteps=steps, inputs=inputs)
    except QuadspikeError:
        return {"layers": layers, "energy": [], "summary": {}}  # a network that cannot be billed
    rates = {layer["layer"]: layer["rate"] for layer in layers}
    rows = [row._asdict() for row in bill.rows]
    return {"layers": layers, "energy": rows, "summary": totals(bill, rates)}


BILLED = ("firing_rate", "energy_mj", "energy_as_lif_mj", "energy_as_qif_mj", "energy_ann_mj")
"""What a summary says of a bill."""


def totals(bill: EnergyReport, rates: Mapping[str, float]) -> dict[str, float]:
    """By the names in `BILLED`: the mean rate over all neurons, energies of an inference."""
    found = bill.exact or bill.estimate
    somas = [(row.neurons, rates[row.layer]) for row in bill.rows if row.layer in rates]
    return {
        "firing_rate": sum(n * rate for n, rate in somas) / max(1, sum(n for n, _ in somas)),
        "energy_mj": found.energy_mj,
        "energy_as_lif_mj": found.lif_mj,
        "energy_as_qif_mj": found.qif_mj,
        "energy_ann_mj": bill.ann_mj,
    }


def write_record(path: Path, content: dict[str, Any]) -> None:
    """The record as readable JSON, whole or not at all."""
    write_text(path, json.dumps({"format": FORMAT, **content}, indent=1) + "\n")
