"""Whether memory is what bounds the kernels: their instructions are counted, without a GPU."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

triton = pytest.importorskip("triton")
ROOT = Path(__file__).parent.parent
TOOL = Path(triton.__file__).parent / "backends/nvidia/bin/nvdisasm"


@pytest.mark.skipif(not TOOL.exists(), reason="this Triton brings no disassembler")
def test_the_page_s_instructions_are_those_of_the_kernels() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    command = [sys.executable, "benchmarks/instructions.py"]
    environment["PYTHONPATH"] = str(ROOT)
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    page = (ROOT / "docs/speed.md").read_text()
    rows = re.findall(r"^\| (\S.*?) *\| ([\d.]+) \| ([\d.]+) \|$", done.stdout, re.M)
    assert len(rows) == 4
    for title, *numbers in rows:
        shown = re.search(rf"^\| {title} \| ([\d.]+) \| ([\d.]+) \|$", page, re.M)
        assert shown is not None, title
        for number, stated in zip(numbers, shown.groups(), strict=True):
            # Another Triton may compile a little otherwise.
            assert float(number) == pytest.approx(float(stated), rel=0.05), title
