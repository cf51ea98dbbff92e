"""The real data beside the repository; what needs them is skipped where they are not."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


def needs(folder: str) -> pytest.MarkDecorator:
    """For a test of the data in that folder."""
    return pytest.mark.skipif(
        not (SHARED / folder).is_dir(), reason=f"needs the real data in ../shared/data/{folder}"
    )
