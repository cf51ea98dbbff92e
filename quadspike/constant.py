"""A mark for `torch.compile`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

F = TypeVar("F", bound=Callable[..., object])


def constant(function: F) -> F:
    """The function gives the same for the same; a compiler calls it once, and looks not inside.

    What `torch.compiler.assume_constant_result` does, but that loads the whole compiler first,
    which takes as long as the rest of torch.
    """
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return function
