"""Compiles every kernel for a GPU that is not there; prints which, and what failed, as JSON.

A process of its own: in the other tests kernels run in Triton's interpreter, which takes much
that the compiler does not.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, product

import torch
import triton

from benchmarks.instructions import Absent
from quadspike import ops
from quadspike.ops.pool import STORED, Window, pool
from quadspike.ops.rehearsal import rehearse
from tests.kernel_cases import AXES, build, run, tensors_of, whole
from tests.pairwise import pairwise
from tests.test_pool import WINDOWS, draw


def somas() -> Iterator[tuple[str, Callable[[], object]]]:
    for case in map(whole, pairwise(AXES)):
        soma = build(case).to(torch.float32)
        yield str(case), partial(run, soma, case, "triton", tensors_of(case), case["dtype"])


def pools() -> Iterator[tuple[str, Callable[[], object]]]:
    for kind, shape, dtype in product(("max", "mean"), WINDOWS, STORED):
        yield f"{kind} of {shape}, {dtype}", partial(pool_both_ways, Window(kind, *shape), dtype)


def pool_both_ways(window: Window, dtype: torch.dtype) -> None:
    x = draw((2, 64, 9, 8), dtype=dtype).requires_grad_()
    out, _ = pool(x, *window)
    out.backward(torch.ones_like(out))


def main() -> None:
    triton.runtime.driver.set_active(Absent())
    kernels: list[str] = []
    triton.knobs.compilation.listener = lambda **told: kernels.append(told["metadata"]["name"])
    # What cannot be compiled is said here, and not when it is launched.
    mode = triton.AsyncCompileMode
    triton.AsyncCompileMode = lambda threads, **ignored: mode(threads, ignore_errors=False)
    ops._obstacle = lambda *asked: ""  # that there is no GPU
    failed: dict[str, str] = {}
    for name, work in chain(somas(), pools()):
        try:
            rehearse(work)
        except Exception as error:
            failed[name] = repr(error)
    print(json.dumps({"kernels": Counter(kernels), "failed": failed}))


if __name__ == "__main__":
    main()
