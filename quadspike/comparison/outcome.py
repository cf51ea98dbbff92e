"""What one run of a comparison came to, beside the run's folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from quadspike.atomic import write_text
from quadspike.errors import QuadspikeError

FORMAT = 1


@dataclass(frozen=True)
class Outcome:
    """A finished run in numbers; where `failure` says why, a run that has none.

    Accuracies and the firing rate are shares, `parameters` what is left at inference;
    `energy_flags` say what a layer got that was no spike: "graded" or "integer" values.
    """

    method: str
    seed: int
    failure: str = ""
    accuracy: float | None = None
    best_accuracy: float | None = None
    step_ms: float | None = None
    memory_gib: float | None = None
    firing_rate: float | None = None
    energy_mj: float | None = None
    energy_flags: tuple[str, ...] = ()
    parameters: int | None = None
    seconds: float | None = None
    device: str | None = None
    """Of the run's last part; None of outcomes from before it was kept."""
    made_on: tuple[str, ...] = ()
    """Device and code of each of its parts; empty in outcomes from before they were kept."""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Outcome:
        """From what JSON gives back of `as_dict`."""
        own: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
        return cls(**own)

    def said(self) -> str:
        """The figure, in words."""
        return f"test accuracy {self.accuracy:.2%}"

    def as_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return asdict(self)

    def write(self, path: Path) -> None:
        """Keep it; whole or not at all."""
        write_text(path, json.dumps({"format": FORMAT, **self.as_dict()}, indent=1) + "\n")

    @classmethod
    def read(cls, path: Path) -> Outcome:
        """What `write` kept."""
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            version = content.pop("format")
            found = cls.of(content)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise QuadspikeError(
                f"{path} is no outcome of a comparison ({error}); delete it to run that again"
            ) from None
        if version != FORMAT:
            raise QuadspikeError(
                f"{path} has format {version}, this version of quadspike reads format {FORMAT}"
            )
        return found
