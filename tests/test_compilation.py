"""The count of kernels compiled in a run's time, from a real compiler that has no GPU."""

from __future__ import annotations

from dataclasses import asdict
from types import SimpleNamespace

import pytest
import torch

from quadspike.training.compilation import Kernels, counts, watched

triton = pytest.importorskip("triton", reason="Triton is not installed")
CUDA = torch.device("cuda")


def _fill(out, value):
    triton.language.store(out, value)


def compile_fill(value_type: str) -> None:
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    kernel = triton.JITFunction(_fill)  # also where the other tests have the interpreter on
    source = ASTSource(kernel, {"out": f"*{value_type}", "value": value_type}, {}, {})
    triton.compile(source, target=GPUTarget("cuda", 90, 32))


def numbers(found):
    return len(found.ours), len(found.found)


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))


def test_kernels_are_compiled_once_and_found_by_the_next_run():
    with watched(CUDA) as first:
        compile_fill("fp32")
        compile_fill("i32")
        compile_fill("fp32")  # its own, not found
    assert numbers(first) == (2, 0)
    assert first.seconds > 0
    with watched(CUDA) as second:
        compile_fill("fp32")
        compile_fill("fp64")
    assert numbers(second) == (1, 1)
    compile_fill("i64")
    assert numbers(second) == (1, 1), "it still listens"


def test_another_listener_hears_on_and_is_put_back():
    heard = []
    before = triton.knobs.compilation.listener
    ours = lambda **told: heard.append(told["cache_hit"])  # noqa: E731
    triton.knobs.compilation.listener = ours
    try:
        with watched(CUDA):
            compile_fill("fp32")
        assert heard == [False]
        assert triton.knobs.compilation.listener is ours
    finally:
        triton.knobs.compilation.listener = before


def test_kernels_compiled_side_by_side_count_their_time_once(monkeypatch):
    now = iter([1.0, 3.0, 3.5, 6.0, 8.0])
    monkeypatch.setattr("quadspike.training.compilation.time.monotonic", lambda: next(now))
    told = {"metadata": {"hash": ""}, "cache_hit": False}
    so_far = []
    with watched(CUDA) as found:
        for seconds in (1.0, 1.0, 1.25, 5.75, 1.0):
            times = SimpleNamespace(total=seconds * 1e6)
            triton.knobs.compilation.listener(**told, times=times)
            so_far.append(found.seconds)
    # 0 to 1; 2 to 3; 2.25 to 3.5; 0.25 to 6, which closes the gap; 7 to 8
    assert so_far == [1.0, 2.0, 2.5, 6.0, 7.0]
    assert numbers(found) == (5, 0)


def test_parts_of_a_run_add_up():
    found = Kernels(["a"], ["b"], seconds=0.5)
    found.add(asdict(Kernels(["c", "d"], ["e"], seconds=0.25)))
    assert found == Kernels(["a", "c", "d"], ["e", "b"], seconds=0.75)


def test_what_an_earlier_part_compiled_was_not_there_beforehand():
    with watched(CUDA) as earlier:
        compile_fill("fp32")
    with watched(CUDA):
        compile_fill("i64")
    with watched(CUDA) as found:
        compile_fill("fp32")
        compile_fill("i64")
        found.add(asdict(earlier))  # only now is its checkpoint read
        compile_fill("fp32")
        compile_fill("fp64")
    assert numbers(found) == (2, 1)
    assert counts(asdict(found)) == {"compiled": 2, "cached": 1, "seconds": found.seconds}


def test_on_a_cpu_nothing_is_counted():
    with watched(torch.device("cpu")) as found:
        compile_fill("fp32")
    assert found == Kernels()
