"""Kernels compiled before they are needed: side by side instead of one after the other."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import torch


def rehearse(work: Callable[[], object]) -> None:
    """Compile the kernels that `work` runs, in many threads at once, without launching them.

    What they would have written is undefined, so the caller undoes what `work` leaves behind. A
    kernel that cannot be compiled says so at its first launch.
    """
    if importlib.util.find_spec("triton") is None:
        return
    from triton import AsyncCompileMode

    from quadspike.ops.triton.launch import rehearsing

    with (
        torch.autograd.set_multithreading_enabled(False),  # its threads would launch
        ThreadPoolExecutor() as threads,
        AsyncCompileMode(threads, ignore_errors=True),
    ):
        before = rehearsing.set(True)
        try:
            work()
        finally:
            rehearsing.reset(before)
