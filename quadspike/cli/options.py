"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tyro.conf import arg

DataRoot = Annotated[
    Path | None,
    arg(
        name="data",
        aliases=["--data-root"],  # the help shows it first
        metavar="FOLDER",
        help="Where the data sets are; else $QUADSPIKE_DATA, else quadspike/data in the user's "
        "cache.",
    ),
]
