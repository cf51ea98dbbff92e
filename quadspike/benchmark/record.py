"""The figures in a file, and as tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from rich.table import Table

from quadspike.atomic import check_file, write_text
from quadspike.errors import QuadspikeError
from quadspike.training.recipe import Recipe
from quadspike.training.record import environment, version_of

FORMAT = 1
Row = dict[str, Any]
_KEY = ("part", "setting", "timesteps", "batch", "precision", "name")


def place_of(recipe: Recipe) -> Row:
    """What tells the rows of one setting from others."""
    return {
        "setting": recipe.name,
        "timesteps": recipe.timesteps,
        "batch": recipe.batch_size,
        "precision": recipe.precision,
    }


def surroundings(device: torch.device) -> Row:
    """The device and the versions of everything that takes part."""
    found = {package: version_of(package) for package in ("spikingjelly", "snntorch")}
    return {**environment(device, 1), "cudnn": torch.backends.cudnn.version(), **found}


class Record:
    """Every row measured so far; one measured again on such a device takes the old one's place.

    Those of a `smoke` run are told apart: they say only that it works.
    """

    def __init__(self, path: Path | None, environment: Row, smoke: bool = False) -> None:
        self.path, self.smoke = path, smoke
        self.content: dict[str, Any] = {"format": FORMAT, "environments": [], "rows": []}
        if path is not None:
            check_file(path)
            if path.exists():
                self.content = _read(path)
        known: list[Row] = self.content["environments"]
        if environment not in known:
            known.append(environment)
        self._environment = known.index(environment)

    @property
    def rows(self) -> list[Row]:
        """In the order they were first measured."""
        rows: list[Row] = self.content["rows"]
        return rows

    @property
    def comparable(self) -> list[Row]:
        """The rows of this device, and of as much care."""
        mine = (self._device(self._environment), self.smoke)
        return [r for r in self.rows if (self._device(r["environment"]), _smoke(r)) == mine]

    def add(self, row: Row) -> None:
        """Keep a row and write the file."""
        row = {**row, "environment": self._environment}
        if self.smoke:
            row["smoke"] = True
        same = [index for index, old in enumerate(self.rows) if self._key(old) == self._key(row)]
        if not same:
            self.rows.append(row)
        elif "error" not in row or "error" in self.rows[same[0]]:
            self.rows[same[0]] = row  # a failure does not take a measurement's place
        if self.path is not None:
            write_text(self.path, json.dumps(self.content, indent=1) + "\n")

    def _key(self, row: Row) -> tuple[Any, ...]:
        values = (row.get(field) for field in _KEY)
        return *values, self._device(row["environment"]), _smoke(row)

    def _device(self, environment: int) -> str | None:
        found: str | None = self.content["environments"][environment].get("device")
        return found


def _smoke(row: Row) -> bool:
    return bool(row.get("smoke"))


def _read(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(path.read_text())
        known = content["format"] == FORMAT and {"environments", "rows"} <= content.keys()
        for row in content["rows"]:
            content["environments"][row["environment"]].get("device")
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise QuadspikeError(f"{path} is no benchmark record: {error}") from None
    if not known:
        raise QuadspikeError(f"{path} is no benchmark record of format {FORMAT}; name another")
    return content


def describe(row: Row) -> str:
    """A row in one line, for a log.

    >>> describe({"part": "step", "setting": "mine", "timesteps": 2, "batch": 8, "title": "ours",
    ...           "ms": 9.5, "peak_gib": 1.8})
    'step: mine T=2 B=8  ours  9.500 ms  1.80 GiB'
    """
    where = f"{row['part']}: {row['setting']} T={row['timesteps']} B={row['batch']}"
    words = [where, row["title"]]
    if "error" in row:
        return "  ".join([*words, f"failed: {row['error']}"])
    for field, form in _SHOWN.items():
        if row.get(field) is not None:
            words.append(form.format(row[field]))
    return "  ".join(words)


_SHOWN = {
    "ms": "{:.3f} ms",
    "peak_gib": "{:.2f} GiB",
    "images_per_second": "{:,.0f} images/s",
    "tflop_s": "{:.2f} TFLOP/s",
    "matrix_share": "{:.1%} of the matrix rate",
    "tb_s": "{:.2f} TB/s",
    "copy_share": "{:.1%} of the copy rate",
    "launches": "{:,.0f} launches",
    "overhead": "{:+.1%} over its steps",
    "steps_seconds": "steps {:.3f} s",
    "augmentation_seconds": "augmentation {:.3f} s",
    "evaluation_seconds": "evaluation {:.3f} s",
    "saving_seconds": "a checkpoint {:.3f} s",
}


def summary_table(rows: list[Row], recipe: Recipe) -> Table:
    """The steps of one setting beside the floor and beside SpikingJelly's best."""
    mine = [row for row in rows if place_of(recipe).items() <= row.items()]
    steps = [row for row in mine if row["part"] in ("step", "floor", "peers")]
    floor = _best(steps, "floor")
    theirs = _best(steps, "sj-")
    ours = _best(steps, "ours")
    place = f"{recipe.name}, T = {recipe.timesteps}, batch {recipe.batch_size}"
    table = Table(title=f"{place}, {recipe.precision}: a training step")
    table.add_column("")
    for heading in ("ms", "10-90 %", "peak GiB", "over floor", "over ours", "SpikingJelly's best"):
        table.add_column(heading, justify="right")
    for row in steps:
        if "error" in row:
            table.add_row(row["title"], "failed", "", "", "", "", "")
            continue
        table.add_row(
            row["title"],
            f"{row['ms']:.3f}",
            f"{row['low']:.2f}-{row['high']:.2f}",
            "" if row["peak_gib"] is None else f"{row['peak_gib']:.2f}",
            _ratio(row["ms"], floor),
            _ratio(row["ms"], ours),
            _ratio(theirs, row["ms"]),
        )
    return table


def _best(rows: list[Row], start: str) -> float | None:
    times = [row["ms"] for row in rows if row["name"].startswith(start) and "ms" in row]
    return min(times, default=None)


def _ratio(above: float | None, below: float | None) -> str:
    return "" if above is None or below is None else f"{above / below:.2f} x"
