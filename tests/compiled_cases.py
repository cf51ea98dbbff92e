"""Compiles the kernels of every case for a GPU that is not there; prints what failed, as JSON.

A process of its own: in the other tests kernels run in Triton's interpreter, which takes much
that the compiler does not.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import torch
import triton

from benchmarks.instructions import Absent
from quadspike import ops
from quadspike.ops.rehearsal import rehearse
from tests.kernel_cases import AXES, build, run, tensors_of, whole
from tests.pairwise import pairwise


def main() -> None:
    triton.runtime.driver.set_active(Absent())
    kernels: list[str] = []
    triton.knobs.compilation.listener = lambda **told: kernels.append(told["metadata"]["name"])
    # What cannot be compiled is said here, and not when it is launched.
    mode = triton.AsyncCompileMode
    triton.AsyncCompileMode = lambda threads, **ignored: mode(threads, ignore_errors=False)
    ops._obstacle = lambda *asked: ""  # that there is no GPU
    failed: dict[str, Any] = {}
    for case in pairwise(AXES):
        case = whole(case)
        soma = build(case).to(torch.float32)
        work = partial(run, soma, case, "triton", tensors_of(case), case["dtype"])
        try:
            rehearse(work)
        except Exception as error:
            failed[str(case)] = repr(error)
    print(json.dumps({"kernels": len(kernels), "failed": failed}))


if __name__ == "__main__":
    main()
