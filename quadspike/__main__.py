"""`quadspike` and `python -m quadspike`, also under `torchrun -m quadspike`."""

from __future__ import annotations

import sys
from typing import NoReturn


def door() -> NoReturn:
    """The command, Ctrl-C while it is being imported included."""
    try:
        from quadspike.cli import program
    except KeyboardInterrupt:
        print("quadspike: interrupted before it began", file=sys.stderr)
        raise SystemExit(130) from None
    program()


if __name__ == "__main__":
    door()
