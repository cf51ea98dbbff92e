"""Launching a kernel, or in a rehearsal only compiling it."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from typing import Any

rehearsing: ContextVar[bool] = ContextVar("rehearsing", default=False)


def launch(kernel: Any, programs: int) -> Callable[..., Any]:
    """The kernel on so many programs, to be called with its arguments."""
    if rehearsing.get():
        return partial(kernel.warmup, grid=(programs,))
    return kernel[(programs,)]  # type: ignore[no-any-return]
