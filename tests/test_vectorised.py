"""The CPU's path against the reference: every case the kernels have, and float64."""

from __future__ import annotations

import pytest
import torch

from quadspike import Soma
from quadspike.call import Call
from quadspike.errors import QuadspikeError
from quadspike.ops.vectorised import blocks
from quadspike.ops.vectorised.program import Program
from quadspike.ops.vectorised.tape import Tape
from quadspike.surrogates import SURROGATES
from tests.kernel_cases import AXES, check
from tests.pairwise import pairwise

HERE = {
    **AXES,
    "surrogate": [name for name in AXES["surrogate"] if not SURROGATES[name].not_vectorised],
    "dtype": [torch.float32, torch.bfloat16, torch.float64],
}
CASES = pairwise(HERE)


def name(case):
    return ", ".join(str(value).removeprefix("torch.") for value in case.values())


@pytest.mark.parametrize("case", CASES, ids=name)
def test_equals_the_reference(case):
    check(case, backend="vectorised")


@pytest.mark.parametrize("case", CASES, ids=name)
def test_equals_the_reference_in_many_blocks(case, monkeypatch):
    """Several blocks of several rows, and a rest that fills no row."""
    monkeypatch.setattr(blocks, "WIDTH", 20)
    monkeypatch.setattr(blocks, "SMALLEST", 40)
    monkeypatch.setattr(blocks, "LARGEST", 40)
    check(case, seed=100, backend="vectorised")


def results_of(soma, x, steps=3, batch=2):
    given = x.clone().requires_grad_()
    out = soma(given, Call(steps, batch))
    return out, *torch.autograd.grad(out.square().sum(), [given, soma.norm.weight])


def test_the_same_call_gives_the_same_bits():
    soma = Soma(16, backend="vectorised")
    x = torch.randn(48, 16, 24, 24).contiguous(memory_format=torch.channels_last)
    first, second = (results_of(soma, x, 4, 12) for _ in range(2))
    assert all(map(torch.equal, first, second))


def test_threads_change_nothing_but_rounding(monkeypatch):
    soma, x = Soma(4, "lif", backend="vectorised"), torch.randn(6, 4, 40, 40)
    alone = results_of(soma, x)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    for got, expected in zip(results_of(soma, x), alone, strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)


def test_statistics_hold_for_means_far_beyond_the_spread():
    x = torch.randn(64, 4, 50, 50) + 1000
    exact = x.double().var((0, 2, 3))
    soma = Soma(4, backend="vectorised")
    soma.norm.momentum = 1.0
    soma(x.contiguous(memory_format=torch.channels_last), Call(4, 16))
    torch.testing.assert_close(soma.norm.running_var.double(), exact, rtol=1e-4, atol=0)


# -- the tape --------------------------------------------------------------------------------


def computed(lines, *inputs):
    """What the recorded lines make of tensors, and how many operations it takes."""
    tape = Tape()
    program = Program(tape, [lines(*(tape.input() for _ in inputs))])
    out = torch.empty_like(inputs[0])
    spare = [torch.empty_like(out) for _ in range(program.spare)]
    program(inputs, [out], spare, program.fix([], out.dtype))
    return out, program.source.count("out=")


@pytest.mark.parametrize(
    ("lines", "operations"),
    [
        (lambda x, y: 0.5 * x * (1 - y), 2),
        (lambda x, y: x * x - 0.5 * x + y, 2),
        (lambda x, y: 2.0 / (1 + x * x) - y / 4, 4),
        (lambda x, y: (x - 0.1 >= 0.2).to(x.dtype) * y, 2),
        (lambda x, y: ((x > -0.5) & (x <= y)).to(x.dtype) * 3.0, 3),
        (lambda x, y: (x * 4.0).sigmoid() - y.abs() / x, 5),
        (lambda x, y: 1e-9 * x + 1e9 * y, 2),
        (lambda x, y: (x == y) * x**2 + 0.0 * y, 3),
        (lambda x, y: x, 0),
    ],
)
def test_recorded_lines_compute_what_they_say(lines, operations):
    x, y = torch.randn(2, 7, 5, dtype=torch.float64)
    got, count = computed(lines, x, y)
    torch.testing.assert_close(got, lines(x, y).to(x.dtype))
    assert count <= operations


@pytest.mark.parametrize(
    "lines",
    [
        lambda x: x if x > 0 else -x,
        lambda x: x**3,
        lambda x: x.clamp(0, 1),
        lambda x: x * torch.ones(2),
    ],
)
def test_lines_that_are_no_plain_arithmetic_are_refused(lines):
    with pytest.raises((QuadspikeError, TypeError)):
        lines(Tape().input())
