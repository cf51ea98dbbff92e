"""Where data sets lie."""

from __future__ import annotations

import os
from pathlib import Path

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
