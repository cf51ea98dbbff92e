"""Where the data sets lie, and whose fault it is if they cannot be read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from quadspike.errors import DataError, QuadspikeError

VARIABLE = "QUADSPIKE_DATA"


def data_root(given: Path | str | None = None) -> Path:
    """The given folder, else the one named by QUADSPIKE_DATA, else one in the user's cache.

    >>> data_root("/data").as_posix()
    '/data'
    """
    chosen = given or os.environ.get(VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The XDG rules say that a relative path there is to be ignored.
    return (cache if cache.is_absolute() else Path.home() / ".cache") / "quadspike" / "data"


@contextmanager
def reading() -> Iterator[None]:
    """What is refused while data are read is the data's own fault."""
    try:
        yield
    except QuadspikeError as error:
        raise DataError(str(error)) from None
