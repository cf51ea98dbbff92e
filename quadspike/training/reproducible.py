"""Which algorithms torch may choose: the fastest, or only those that repeat bit for bit."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def algorithms(deterministic: bool) -> Iterator[None]:
    """Set torch's switches for a run, and put them back."""
    before = (
        torch.are_deterministic_algorithms_enabled(),
        torch.backends.cudnn.benchmark,
        torch.backends.cudnn.deterministic,
    )
    if deterministic:
        # cuBLAS reads it when it starts; without it torch refuses to promise anything.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(deterministic)
    torch.backends.cudnn.deterministic = deterministic
    torch.backends.cudnn.benchmark = not deterministic
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0])
        torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic = before[1:]


@contextmanager
def untuned() -> Iterator[None]:
    """For what runs once or twice: trying which algorithm is fastest would take longer."""
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = False
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before
