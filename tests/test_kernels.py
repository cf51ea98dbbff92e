"""The fused kernels against the reference; without a GPU in Triton's interpreter."""

from __future__ import annotations

import itertools
import os
import random
from concurrent.futures import ProcessPoolExecutor

import pytest
import torch
import torch.multiprocessing as mp

pytest.importorskip("triton")

from quadspike import Soma
from quadspike.call import Call
from quadspike.ops.triton import tiles
from tests.kernel_cases import AXES, DEFAULTS, check, draw, twins
from tests.pairwise import pairwise

CASES = pairwise(AXES)


def name(case):
    return ", ".join(str(value).removeprefix("torch.") for value in case.values())


def test_the_cases_are_few_and_every_pair_of_choices_meets():
    assert len(CASES) <= 300
    met = {
        (a, str(case[a]), b, str(case[b])) for case in CASES for a in AXES for b in AXES if a < b
    }
    sizes = [len(values) for values in AXES.values()]
    assert len(met) == sum(m * n for i, m in enumerate(sizes) for n in sizes[i + 1 :])


@pytest.mark.parametrize("case", CASES, ids=name)
def test_equals_the_reference(case, device):
    check(case, device)


@pytest.mark.parametrize("layout", ["channels last", "contiguous"])
@pytest.mark.parametrize("surrogate", ["sigmoid", "local-zo"])
@pytest.mark.parametrize(("steps", "residual"), [(2, "before"), (12, None), (20, "after")])
def test_many_tiles_and_few_programs(layout, steps, residual, surrogate, device, monkeypatch):
    """Several tiles a program, masked at every border, and long times in chunks."""
    small = {1: tiles.Setting(bytes=4, warps=1, columns=4, programs=5)}
    monkeypatch.setattr(tiles, "SETTINGS", dict.fromkeys(tiles.SETTINGS, small))
    monkeypatch.setattr(tiles, "LONGEST_CHUNK", 8)
    given = {
        "steps": steps,
        "residual": residual,
        "layout": layout,
        "size": (2, 5, 6 if steps == 2 else 3),
    }
    check({**given, "surrogate": surrogate}, device)


def test_long_times_are_cut_into_equal_chunks():
    cuts = {1: 1, 4: 4, 10: 10, 16: 16, 17: 17, 20: 10, 23: 23, 32: 16, 37: 1, 40: 10}
    assert {steps: tiles.chunk_of(steps, whole=False) for steps in cuts} == cuts
    assert tiles.chunk_of(32, whole=True) == 32


def test_statistics_hold_for_means_far_beyond_the_spread(device):
    x = torch.randn(64, 4, 5, 5) + 1000
    exact = x.double().var((0, 2, 3))
    _, soma = twins(4, device)
    soma.norm.momentum = 1.0
    soma(x.to(device), Call(4, 16))
    torch.testing.assert_close(soma.norm.running_var.cpu().double(), exact, rtol=1e-4, atol=0)


def test_the_same_call_gives_the_same_bits(device):
    _, soma = twins(5, device)
    x = torch.randn(6, 5, 7, 3, device=device)
    results = []
    for _ in range(2):
        given = x.clone().requires_grad_()
        out = soma(given, Call(3, 2))
        results.append((out, *torch.autograd.grad(out.square().sum(), [given, soma.norm.weight])))
    assert all(map(torch.equal, *results))


# -- on a GPU ------------------------------------------------------------------------------


def product():
    """QIF and LIF at every time, type, layout, residual, norm and kind of input with each other;
    the other neurons at every time, residual and norm; every neuron with every surrogate.

    What is not crossed is drawn.
    """
    axes = {**AXES, "layout": AXES["layout"][:2], "residual": AXES["residual"][:3]}
    axes |= {"norm": AXES["norm"][:3], "learned": ["none", "none", "none", "layer", "channel"]}
    plain, others = ["qif", "lif"], [name for name in axes["neuron"] if name not in ("qif", "lif")]
    crossed = ("steps", "residual", "norm")
    yield from crossing({**axes, "neuron": plain}, *crossed, "neuron", "dtype", "layout", "static")
    yield from crossing({**axes, "neuron": others}, *crossed, "neuron")
    yield from crossing(axes, "surrogate", "neuron")


def crossing(axes, *crossed):
    """Each choice of the `crossed` axes with each, and one of the others, always the same."""
    draws = random.Random(0)
    for values in itertools.product(*(axes[key] for key in crossed)):
        drawn = {key: draws.choice(choices) for key, choices in axes.items()}
        yield drawn | dict(zip(crossed, values, strict=True))


def attempt(case):
    try:
        check(case, "cuda")
    except Exception as error:
        return f"{name(case)}: {error}"
    return None


@pytest.mark.gpu
def test_the_full_product_on_a_gpu():
    """Compiling takes the time, so many processes share it."""
    workers = max(1, min(12, (os.cpu_count() or 1) - 2))
    with ProcessPoolExecutor(workers, mp_context=mp.get_context("spawn")) as pool:
        wrong = [text for text in pool.map(attempt, product(), chunksize=8) if text]
    assert not wrong, "\n\n".join(wrong[:5])


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_training_step_replays_from_a_cuda_graph(dtype):
    soma = Soma(64).cuda()
    x = draw({**DEFAULTS, "size": (8, 64, 16), "dtype": dtype}, 16).cuda().requires_grad_()
    weights = torch.randn_like(x)

    def step():
        soma.zero_grad(set_to_none=True)
        out = soma(x, Call(2, 8))
        return out, *torch.autograd.grad(out, [x, soma.norm.weight], weights)

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = step()
    with torch.no_grad():
        x.copy_(torch.randn_like(x))
    graph.replay()
    for got, expected in zip(captured, step(), strict=True):
        assert torch.equal(got, expected)
