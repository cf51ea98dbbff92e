"""How many processors there are to work with."""

from __future__ import annotations

import os


def usable_processors() -> int:
    """Those this process may run on, which a batch system or a container may have made few."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
