"""How many instructions the backward of a soma issues, beside what memory leaves time for.

    python benchmarks/instructions.py                  # QIF and LIF with their windows, and Dspike

Needs no GPU: the kernels are compiled for an H100 or H200 (sm_90), and the instructions in their
loops are counted, an element and step. "memory allows" is how many could be issued while its bytes
move: 132 multiprocessors of four schedulers at 1.83 GHz, the clock of the 989 TFLOP/s it is sold
with, and the copy rate measured on an H200. More of them, and the pass waits for arithmetic.
bfloat16, channels last, T = 2, 128 channels.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget

from quadspike import Soma
from quadspike.ops import fused
from quadspike.ops.rehearsal import rehearse

ISSUED_A_SECOND = 132 * 4 * 32 * 1.83e9
COPIED_A_SECOND = 4.28e12
BYTES = {"sums": 4, "input": 6}
"""Of an element and step: x and the output's gradient are read, and one is written."""
STEPS, BATCH, CHANNELS, SIDE = 2, 8, 128, 16
CASES: dict[str, dict[str, Any]] = {
    "LIF, window": {"name": "lif"},
    "QIF, window": {"name": "qif"},
    "QIF, Dspike": {"name": "qif", "u2": -2.0, "surrogate": "dspike"},
}


class Absent:
    """A GPU to compile for; whatever is launched finds that it has no launcher."""

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0


def longest_loop(cubin: str) -> int:
    """Instructions of the longest loop in a compiled kernel."""
    tool = Path(triton.__file__).parent / "backends/nvidia/bin/nvdisasm"
    text = subprocess.run([tool, "-c", cubin], capture_output=True, text=True, check=True).stdout
    places: dict[str, int] = {}
    lengths, count = [0], 0
    for line in text.splitlines():
        if label := re.match(r"(\.L_x_\d+):", line):
            places[label[1]] = count
        elif re.match(r"\s*/\*[0-9a-f]{4,}\*/", line):
            count += 1
            if (to := re.search(r"BRA.*(\.L_x_\d+)", line)) and to[1] in places:
                lengths.append(count - places[to[1]])
    return max(lengths)


def counted(neuron: dict[str, Any]) -> dict[str, float]:
    """Instructions an element and step in each pass of the backward."""
    found: dict[str, float] = {}

    def listen(**told: Any) -> None:
        source, metadata = told["src"], told["metadata"]
        if metadata["name"] != "backward_kernel":
            return
        names = source.fn.arg_names
        constants = {names[place]: value for (place, *_), value in source.constants.items()}
        tile = constants["ROWS"] * constants["COLUMNS"] // (32 * metadata["num_warps"])
        (cubin,) = (path for name, path in told["metadata_group"].items() if name.endswith("cubin"))
        found["sums" if constants["SUM"] else "input"] = longest_loop(cubin) / tile / STEPS

    def step() -> None:
        size = (BATCH * STEPS, CHANNELS, SIDE, SIDE)
        x = torch.zeros(size, dtype=torch.bfloat16).to(memory_format=torch.channels_last)
        x.requires_grad_()
        options: dict[str, Any] = {"norm": soma.norm, "steps": STEPS, "batch": BATCH}
        out = fused.soma(x, soma.neuron, backend="triton", **options).out
        out.backward(torch.empty_like(out))

    soma = Soma(CHANNELS, neuron=neuron)
    triton.knobs.compilation.listener = listen
    rehearse(step)
    return found


if __name__ == "__main__":
    if len(sys.argv) > 1:
        raise SystemExit(__doc__)
    if triton.knobs.runtime.interpret:
        raise SystemExit("an interpreter has no instructions: unset TRITON_INTERPRET")
    triton.runtime.driver.set_active(Absent())
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TRITON_CACHE_DIR"] = cache
        rows = {title: counted(neuron) for title, neuron in CASES.items()}
    print(f"| {'instructions':14} | {' | '.join(BYTES)} |\n|---|{'---|' * len(BYTES)}")
    for title, row in rows.items():
        print(f"| {title:14} | {' | '.join(f'{row[part]:.1f}' for part in BYTES)} |")
    allowed = (size * ISSUED_A_SECOND / COPIED_A_SECOND for size in BYTES.values())
    print(f"| memory allows  | {' | '.join(f'{number:.1f}' for number in allowed)} |")
