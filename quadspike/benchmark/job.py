"""What is to be measured where, and a row for each thing measured, even one that fails."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from quadspike.benchmark.record import Row, place_of
from quadspike.benchmark.setting import Setting
from quadspike.benchmark.timing import QUICK, Effort, Peak
from quadspike.errors import QuadspikeError


@dataclass(frozen=True)
class Job:
    """A setting on a device; `only` names the contenders wanted, all if there are none."""

    setting: Setting
    device: torch.device
    only: tuple[str, ...] = ()
    smoke: bool = False
    """See that everything runs; the times mean nothing."""

    @property
    def effort(self) -> Effort:
        return QUICK if self.smoke else Effort()

    def wants(self, name: str) -> bool:
        return not self.only or name in self.only


def attempt(job: Job, name: str, title: str, work: Callable[[], Row], **where: Any) -> Row:
    """The row of `work`, or of why it failed: one library's trouble must not end the run."""
    row = {"name": name, "title": title, **place_of(job.setting.recipe), **where}
    try:
        return {**row, **work()}
    except Exception as error:
        reason = " ".join(str(error).split())[:300]
        kind = "" if isinstance(error, QuadspikeError) else f"{type(error).__name__}: "
        trace = traceback.format_exc()[-4000:]
        return {**row, "error": f"{kind}{reason}", "traceback": trace}
    finally:
        Peak(job.device)  # frees what the work left
