"""The console of every command."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TextIO

from rich.console import Console


def make_console(stderr: bool = False, at_least: int = 0, lasting: bool = False) -> Console:
    """One that prints what it is given: no colours for numbers, and `:100:` is no picture.

    `at_least` so many columns wide: a narrower terminal folds the lines itself, where fitting a
    table into it would cut cells or leave columns out. A `lasting` one is for long work, which
    goes on where nobody can read any more what it says.
    """
    file: Any = _Lasting(sys.stdout) if lasting and sys.stdout else None
    console = Console(file=file, stderr=stderr, emoji=False, highlight=False)
    if console.width < at_least:
        console.width = at_least
    return console


class _Lasting:
    """Standard output until it fails, as where a pipe's reader ends or the disk is full."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._try(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        self._try(self._stream.flush)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _try(self, say: Callable[[], object]) -> None:
        try:
            say()
        except OSError as error:
            # What is left in the buffer would fail again at every turn.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
            with suppress(OSError):
                print(
                    f"quadspike: cannot write what it says: {error.strerror}; the work goes on "
                    "without a word, and is on record in the end",
                    file=sys.stderr,
                )
