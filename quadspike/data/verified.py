"""What a check of a data set found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Verified:
    """Whether a data set is here and whole: what was found and where, and what is wrong."""

    name: str
    found: str
    problem: str = ""

    @property
    def whole(self) -> bool:
        return not self.problem
