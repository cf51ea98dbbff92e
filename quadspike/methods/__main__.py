"""`python -m quadspike.methods FILE` writes the documentation page."""

import sys
from pathlib import Path

from quadspike.atomic import write_text
from quadspike.methods.page import methods_page

if len(sys.argv) != 2:
    raise SystemExit("usage: python -m quadspike.methods docs/methods.md")
write_text(Path(sys.argv[1]), methods_page())
