"""What `gradients.examine` found, in a file."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from quadspike.atomic import write_text
from quadspike.errors import QuadspikeError

FORMAT = 1
_NUMBERS = re.compile(r"\[\n[-+\d.eE,\s]*\]")  # no string holds a line break


def write_layers(found: Sequence[dict[str, Any]], path: Path) -> None:
    """All networks looked at, with every number; a list of numbers is one line."""
    text = json.dumps({"format": FORMAT, "networks": list(found)}, indent=1)
    write_text(path, _NUMBERS.sub(_on_one_line, text) + "\n")


def _on_one_line(numbers: re.Match[str]) -> str:
    return " ".join(numbers[0].split()).replace("[ ", "[").replace(" ]", "]")


def read_layers(path: Path) -> list[dict[str, Any]]:
    """The networks that `write_layers` wrote."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        networks: list[dict[str, Any]] = content["networks"]
        whole = content["format"] == FORMAT and all(network["layers"] for network in networks)
    except OSError as error:
        raise QuadspikeError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        whole = False
    if not whole:
        raise QuadspikeError(f"{path} is not what `quadspike layers --out` writes, or is damaged")
    return networks
