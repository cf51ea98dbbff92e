"""Rehearses a soma's kernels for a GPU that is not there; prints what was compiled, as JSON.

A process of its own: in the other tests kernels run in Triton's interpreter.
"""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import triton
import triton.language as tl

from benchmarks.instructions import Absent
from quadspike import Soma
from quadspike.ops import fused
from quadspike.ops.rehearsal import rehearse
from quadspike.ops.triton.launch import launch
from tests.own_neurons import Exponential, Gated, Inside, Rectified, Tangent, Waves


@triton.jit
def broken_kernel(out):  # type: ignore[no-untyped-def]
    tl.store(out, nobody_knows_this)  # type: ignore[name-defined]  # noqa: F821


def broken() -> None:
    launch(broken_kernel, 1)(torch.zeros(1))


def learn(steps: int = 2, soma: Soma | None = None) -> None:
    soma = soma or SOMA
    x = torch.randn(3 * steps, 4, 5, 5, requires_grad=True)
    result = fused.soma(x, soma.neuron, norm=soma.norm, steps=steps, batch=3, backend="triton")
    result.out.sum().backward()


def interrupted() -> None:
    """Ctrl-C while kernels are being compiled, once the first of them is."""
    first = threading.Lock()

    def interrupt(**told: Any) -> None:
        if first.acquire(blocking=False):
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job has none
    triton.knobs.compilation.listener = interrupt
    rehearse(lambda: learn(steps=4))


def compiled(work: Callable[[], None]) -> dict[str, Any]:
    """The kernels that `work` compiled, whether here, and what it ended with."""
    kernels: list[str] = []
    threads: set[int] = set()

    def listen(**told: Any) -> None:
        kernels.append(told["metadata"]["name"])
        threads.add(threading.get_ident())

    triton.knobs.compilation.listener = listen
    try:
        work()
        error = None
    except (Exception, KeyboardInterrupt) as raised:
        error = type(raised).__name__
    return {"kernels": sorted(kernels), "here": threading.get_ident() in threads, "error": error}


SOMA, STEEP = Soma(4), {"name": "qif", "surrogate": "dspike"}
OWN = [Exponential(surrogate=Tangent()), Rectified(surrogate=Waves()), Gated(surrogate=Inside())]

if __name__ == "__main__":
    triton.runtime.driver.set_active(Absent())
    found = {
        "rehearsed": compiled(lambda: rehearse(learn)),
        "again": compiled(lambda: rehearse(learn)),
        "launched": compiled(learn),
        "sigmoid": compiled(lambda: rehearse(lambda: learn(soma=Soma(4, STEEP)))),
        **{own.name: compiled(partial(rehearse, partial(learn, soma=Soma(4, own)))) for own in OWN},
        "broken": compiled(lambda: rehearse(broken)),
        "broken, launched": compiled(broken),
        "interrupted": compiled(interrupted),
        "after that": compiled(lambda: rehearse(learn)),
    }
    print(json.dumps(found))
