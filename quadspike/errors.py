"""One exception for a user's mistake, one warning for a risky choice."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeGuard

if TYPE_CHECKING:
    import torch


class QuadspikeError(ValueError):
    """Bad input: the message says what was given, what is allowed and what to do."""


class WriteError(QuadspikeError):
    """A file that cannot be written: at fault is the place, not what was asked for."""


class DataError(QuadspikeError):
    """Data that are not there or are damaged: at fault are they, not what was asked for."""


class QuadspikeWarning(UserWarning):
    """Input that is allowed but rarely meant."""


def check_name(kind: str, given: object, allowed: Iterable[str]) -> str:
    """Return `given` if it is one of `allowed`, else raise and suggest the nearest.

    >>> check_name("model", "resnet19", ["resnet19", "vggsnn"])
    'resnet19'
    """
    names = list(allowed)
    if isinstance(given, str) and given in names:
        return given
    close = difflib.get_close_matches(str(given).lower(), names, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise QuadspikeError(f"unknown {kind} {given!r}{hint} (one of: {', '.join(sorted(names))})")


def check_device(given: str) -> torch.device:
    """The device of that name, if it is here."""
    import torch

    try:
        device = torch.device(given)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise QuadspikeError(
            f"no device {given!r} here ({reason}); use cpu, cuda or cuda:N"
        ) from None
    return device


def not_floating(given: object) -> str:
    """What was given in place of a floating tensor, and how to make it one; empty if it is one.

    >>> not_floating([0.5])
    'list; use torch.as_tensor(x, dtype=torch.float32)'
    """
    import torch

    if not isinstance(given, torch.Tensor):
        return f"{type(given).__name__}; use torch.as_tensor(x, dtype=torch.float32)"
    return "" if given.is_floating_point() else f"{given.dtype}; use .float()"


def is_number(given: object) -> TypeGuard[int | float]:
    """Whether `given` is an int or a float that is finite, as a float holds it.

    >>> import math
    >>> [is_number(value) for value in (1, 0.5, True, math.inf, 10**400, "1")]
    [True, True, False, False, False, False]
    """
    if not isinstance(given, int | float) or isinstance(given, bool):
        return False
    return abs(given) <= sys.float_info.max  # not converted: a float cannot hold every int


def check_count(name: str, given: object) -> int:
    """Return `given` if it is a whole number of at least one, else raise."""
    if isinstance(given, int) and not isinstance(given, bool) and given >= 1:
        return given
    raise QuadspikeError(f"{name} must be a whole number >= 1, got {given!r}")
