"""Kernels compiled before they are needed: side by side instead of one after the other."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import torch


def rehearse(work: Callable[[], object]) -> None:
    """Compile the kernels that `work` runs, in many threads at once, without launching them.

    What they would have written is undefined, so the caller undoes what `work` leaves behind. A
    kernel that cannot be compiled says so at its first launch.
    """
    if importlib.util.find_spec("triton") is not None:
        # In a copy, with which goes what an interrupt leaves set, as it does Triton's mode.
        copy_context().run(_rehearse, work)


def _rehearse(work: Callable[[], object]) -> None:
    from triton import AsyncCompileMode

    from quadspike.ops.triton.launch import rehearsing

    rehearsing.set(True)
    with (
        torch.autograd.set_multithreading_enabled(False),  # its threads would launch
        ThreadPoolExecutor() as threads,
        AsyncCompileMode(threads, ignore_errors=True),
    ):
        work()
