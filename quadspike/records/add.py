"""From the folder of a finished run to the files of its record."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from quadspike.errors import QuadspikeError
from quadspike.json_table import as_table
from quadspike.records.command import train_command
from quadspike.records.metrics import as_lines, compact, rounded
from quadspike.records.runs import (
    METRICS,
    RECIPE,
    RECORD,
    TABLES,
    check_run,
    choices,
    device,
    headline,
    read_record,
    whole,
)
from quadspike.records.source import Repository, find_commit
from quadspike.records.store import Files
from quadspike.records.weights import read_evaluation, read_index
from quadspike.training.folder import FORMAT, RunFolder, sha256, weights_file
from quadspike.training.recipe import Recipe
from quadspike.training.record import source_fingerprint

SECONDS = (
    "everything from the call of train on: data from disk, building the network, compilation, "
    "every step, evaluation and saving; not the imports before it nor the measurements at the end"
)


def record_run(
    run: Path, repository: Repository, export: Path | None = None, note: str = ""
) -> Files:
    """The files of a record of the run in the folder `run`, checked.

    With `export` the headline is the score of those weights, which are this run's last ones.
    """
    folder = RunFolder(run)
    recipe = folder.read_recipe()
    if not folder.record.exists():
        raise QuadspikeError(f"{run} has no {RECORD}: the run is not finished; go on with --resume")

    folder.check_loaded("a record is of data that anyone can load by name")

    def make() -> Files:
        found = json.loads(folder.record.read_text(encoding="utf-8"))
        _check_run(folder, recipe, found)
        start = json.loads(folder.recipe.read_text(encoding="utf-8"))
        content = _content(found, recipe, repository, export)
        if start.get("init_from") is not None:
            content["init_from"] = _first_weights(start)
            content["command"] += f" --init-from {content['init_from']['sha256'][:8]}.safetensors"
        if note:
            content["note"] = note
        return {
            RECIPE: json.dumps({"format": FORMAT, "recipe": recipe.as_dict()}, indent=1) + "\n",
            METRICS: as_lines(as_table(compact(found["metrics"]))),
            RECORD: _readable(content),
        }

    try:
        files = whole(make)
        check_run(read_record(run.name, files), repository)
    except QuadspikeError as error:
        raise QuadspikeError(f"no record of {run}: {error}") from None
    return files


def _check_run(folder: RunFolder, recipe: Recipe, found: dict[str, Any]) -> None:
    """Refuse a folder that is not finished, or whose files do not belong together."""
    if found["summary"]["status"] != "finished":
        raise QuadspikeError("the run was stopped before its end; go on with --resume")
    if Recipe.from_dict(found["recipe"]) != recipe:
        raise QuadspikeError(f"{RECIPE} and {RECORD} have different recipes")
    lines = folder.metrics.read_text(encoding="utf-8").splitlines()
    if [json.loads(line) for line in lines] != found["metrics"]:
        raise QuadspikeError(f"{METRICS} and {RECORD} have different epochs")
    for name, stated in found["weights"].items():
        if (folder.path / name).exists() and sha256(folder.path / name) != stated:
            raise QuadspikeError(f"{name} is not the file that {RECORD} was written with")


def _content(
    found: dict[str, Any], recipe: Recipe, repository: Repository, export: Path | None
) -> dict[str, Any]:
    environment, earlier = found["environment"], found.get("earlier_environments")
    exported = None if export is None else _exported(export)
    ours = environment["source"] == source_fingerprint()
    notes = [note for note in found["notes"] if not note.startswith("weights from ")]
    return {
        "format": TABLES,
        "name": found["name"],
        "commit": find_commit(environment, repository),
        "command": train_command(recipe, environment["workers"], () if ours else found["recipe"]),
        "summary": {
            **headline(found["summary"], exported),
            **found["summary"],
            "seconds_include": SECONDS,
            "device": device(found),
            "choices": choices(recipe),
        },
        "environment": environment,
        **({"earlier_environments": earlier} if earlier else {}),
        "kernels": found.get("kernels"),
        "parameters": found["parameters"],
        "neuron": found["neuron"],
        "weights": found["weights"],
        "export": exported,
        "warnings": found["warnings"],
        "notes": notes,
        "layers": as_table(rounded([_coarser(layer) for layer in found["layers"]])),
        "energy": as_table(rounded(found["energy"])),
    }


def _coarser(layer: dict[str, Any]) -> dict[str, Any]:
    """With every three bins of its histogram as one, or it would be most of a record."""
    histogram = layer["histogram"]
    counts = histogram["counts"]
    merged = [*map(sum, zip(counts[::3], counts[1::3], counts[2::3], strict=True))]
    return {**layer, "histogram": {**histogram, "counts": merged}}


def _exported(folder: Path) -> dict[str, Any]:
    index = read_index(folder)
    evaluation = read_evaluation(folder, index)
    if evaluation is None:
        raise QuadspikeError(
            f"the weights in {folder} have no score; make it with: quadspike records evaluate "
            f"{shlex.quote(str(folder))}"
        )
    kept = {key: index[key] for key in ("dtype", "of", "sha256", "bytes", "files")}
    return {**kept, "evaluation": {k: v for k, v in evaluation.items() if k != "format"}}


def _first_weights(start: Mapping[str, str]) -> dict[str, str]:
    """As they were when the run began; runs of before that was noted, as they are now."""
    if noted := start.get("init_from_sha256"):
        return {"sha256": noted}
    file = weights_file(Path(start["init_from"]))
    if not file.is_file():
        raise QuadspikeError(
            f"the run started from {file}, which is not there to be named by its SHA-256"
        )
    return {"sha256": sha256(file)}


def _readable(content: dict[str, Any]) -> str:
    """A line for each entry, and for each row of a table one."""
    parts = []
    for key, value in content.items():
        if key in ("layers", "energy"):
            rows = ",\n".join(f"  {json.dumps(row, separators=(',', ':'))}" for row in value)
            text = f"[\n{rows}\n ]" if rows else "[]"
        else:
            text = json.dumps(value, indent=1).replace("\n", "\n ")
        parts.append(f" {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}\n"
