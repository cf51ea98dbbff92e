"""Pooling against torch's; without a GPU in Triton's interpreter."""

from __future__ import annotations

import math
import os

import pytest
import torch
import torch.nn.functional as F

pytest.importorskip("triton")

from quadspike.models import pool as modules
from quadspike.models.pool import AveragePool, MaxPool
from quadspike.ops.pool import Window, pool, pool_backward, runs

LAST = torch.channels_last
STEM = Window("max", [3, 3], [2, 2], [1, 1])
HALVES = Window("mean", [2, 2], [2, 2], [0, 0])
WINDOWS = [
    ([2, 2], [2, 2], [0, 0]),
    ([3, 3], [2, 2], [1, 1]),
    ([3, 3], [1, 1], [1, 1]),
    ([3, 2], [1, 3], [1, 0]),  # one way with overlap, the other with pixels left out
    ([1, 2], [3, 4], [0, 1]),
    ([5, 7], [3, 2], [2, 3]),
    ([9, 6], [5, 6], [0, 3]),  # the whole height
]


@pytest.fixture(params=["interpreter", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request):
    if request.param == "cuda":
        return "cuda"
    if os.environ.get("TRITON_INTERPRET") != "1":
        pytest.skip("Triton compiles here")
    return "cpu"


def draw(shape, device="cpu", dtype=torch.float32):
    return torch.randn(shape).to(device, dtype, memory_format=LAST)


def torch_s(x, window):
    """Output, and which pixel of the image won, in float32 on the CPU."""
    x, shape = x.cpu().float(), window[1:]
    if window.kind == "max":
        return F.max_pool2d(x, *shape, return_indices=True)
    return F.avg_pool2d(x, *shape), None


def pixels(winners, window, width):
    """Places in an image from places in its windows."""
    winners = winners.cpu().long()
    (_, across), stride, padding = window[1:]
    y = torch.arange(winners.shape[2])[:, None] * stride[0] - padding[0] + winners // across
    x = torch.arange(winners.shape[3]) * stride[1] - padding[1] + winners % across
    return y * width + x


def check(x, window):
    ours, theirs = x.clone().requires_grad_(), x.detach().cpu().float().requires_grad_()
    (got, winners), (expected, places) = pool(ours, *window), torch_s(theirs, window)
    exact = {"rtol": 0, "atol": 0} if window.kind == "max" else {}
    torch.testing.assert_close(got.cpu(), expected.to(x.dtype), equal_nan=True, **exact)
    assert got.is_contiguous(memory_format=LAST)
    if places is not None:
        assert torch.equal(pixels(winners, window, x.shape[3]), places)
    weights = torch.randn_like(got)
    got.backward(weights)
    expected.backward(weights.cpu().float())
    torch.testing.assert_close(ours.grad.cpu(), theirs.grad.to(x.dtype))
    assert ours.grad.is_contiguous(memory_format=LAST)


@pytest.mark.parametrize("shape", WINDOWS, ids=str)
@pytest.mark.parametrize("kind", ["max", "mean"])
def test_windows_of_every_form(kind, shape, device):
    check(draw((2, 5, 9, 11), device), Window(kind, *shape))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("size", [(3, 70, 7, 6), (1, 1, 2, 2), (2, 64, 16, 17), (0, 8, 4, 4)])
@pytest.mark.parametrize("window", [STEM, HALVES, HALVES._replace(kind="max")])
def test_every_size_and_type(window, size, dtype, device):
    check(draw(size, device, dtype), window)


@pytest.mark.parametrize("values", [[0.0, 1.0], [-1.0, -math.inf], [-math.inf], [0.0, -0.0]])
def test_the_first_of_equals_wins(values, device):
    picks = torch.randint(len(values), (2, 4, 9, 8))
    x = torch.tensor(values)[picks].to(device, memory_format=LAST)
    check(x, STEM)


def test_not_a_number_wins(device):
    x = draw((2, 4, 9, 8), device)
    x[torch.rand_like(x) < 0.2] = math.nan
    x[torch.rand_like(x) < 0.2] = math.inf
    check(x, STEM)


def test_gradients_that_are_no_numbers_stay_where_they_belong(device):
    x = draw((1, 1, 4, 4), device).requires_grad_()
    weights = torch.ones(1, 1, 2, 2, device=device)
    weights[0, 0, 0, 0] = math.nan
    pool(x, *HALVES)[0].backward(weights)
    expected = torch.zeros(4, 4, dtype=torch.bool)
    expected[:2, :2] = True
    assert torch.equal(x.grad[0, 0].isnan().cpu(), expected)


def test_other_memory_is_laid_out_first(device):
    x = torch.randn(2, 6, 5, 8, device=device)
    out, _ = pool(x, *STEM)
    assert torch.equal(out.cpu(), torch_s(x, STEM)[0])
    whole = draw((2, 6, 5, 8), device).requires_grad_()
    pool(whole, *HALVES)[0].sum().backward()  # a gradient of one number, without memory
    assert torch.equal(whole.grad[:, :, :4].cpu(), torch.full((2, 6, 4, 8), 0.25))


@pytest.mark.parametrize("window", [STEM, HALVES])
def test_the_operators_are_what_torch_expects(window, device):
    x = draw((2, 3, 6, 7), device).requires_grad_()
    torch.library.opcheck(pool, (x, *window))
    out, winners = pool(x.detach(), *window)
    checks = ("test_schema", "test_faketensor")
    given = (torch.randn_like(out), winners, 6, 7, *window)
    torch.library.opcheck(pool_backward, given, test_utils=checks)


def run_in_interpreter(device, monkeypatch):
    """Let modules take the operator on the CPU too."""
    if device == "cpu":
        monkeypatch.setattr(modules, "runs", lambda x, window: window.fits(x.shape[2:]))


def test_compiles_whole_for_sizes_unknown(device, monkeypatch):
    run_in_interpreter(device, monkeypatch)
    module = MaxPool(3, stride=2, padding=1)
    compiled = torch.compile(module, backend="aot_eager", fullgraph=True, dynamic=True)
    for size in [(2, 3, 6, 7), (4, 3, 9, 8)]:
        ours = draw(size, device).requires_grad_()
        theirs = ours.detach().cpu().requires_grad_()
        compiled(ours).mul(2).sum().backward()
        F.max_pool2d(theirs, *STEM[1:]).mul(2).sum().backward()
        torch.testing.assert_close(ours.grad.cpu(), theirs.grad)


SUPPORTED = [
    AveragePool(2),
    AveragePool((3, 2), stride=2, padding=1),
    AveragePool(2, count_include_pad=False),
    MaxPool(3, stride=2, padding=1),
]
UNSUPPORTED = [
    AveragePool(2, ceil_mode=True),
    AveragePool(3, padding=1, count_include_pad=False),
    AveragePool(2, divisor_override=3),
    AveragePool(17, stride=1, padding=8),
    MaxPool(2, ceil_mode=True),
    MaxPool(2, dilation=2),
    MaxPool(2, return_indices=True),
]


@pytest.mark.parametrize("module", SUPPORTED + UNSUPPORTED, ids=repr)
def test_modules_are_torch_s(module, device, monkeypatch):
    calls = []
    monkeypatch.setattr(modules, "pool", lambda *given: calls.append(given) or pool(*given))
    run_in_interpreter(device, monkeypatch)
    x = draw((2, 3, 9, 7), device)
    expected = super(type(module), module).forward(x)
    torch.testing.assert_close(module(x), expected)
    assert len(calls) == (module in SUPPORTED)


def test_who_runs_elsewhere():
    x = draw((2, 3, 8, 8))
    assert not runs(x, HALVES)
    torch.testing.assert_close(AveragePool(2)(x), F.avg_pool2d(x, 2))
    with pytest.raises(RuntimeError, match="pad"):
        MaxPool(2, padding=2)(x)


@pytest.mark.gpu
def test_which_tensors_of_a_gpu_run():
    x = draw((2, 3, 8, 8), "cuda")
    assert runs(x, HALVES)
    assert runs(x.bfloat16(), HALVES)
    for other in (x.double(), x.contiguous(), x[0], x.cpu(), x[:, :, ::2]):
        assert not runs(other, HALVES)
    assert not runs(x, Window("max", [2, 2], [2, 2], [2, 2]))
    assert not runs(x, Window("max", [9, 9], [1, 1], [0, 0]))


@pytest.mark.gpu
@pytest.mark.parametrize("window", [STEM, HALVES])
def test_offsets_beyond_32_bits(window):
    images = 2**21 + 3
    x = torch.zeros((images, 64, 4, 4), dtype=torch.bfloat16, device="cuda").to(memory_format=LAST)
    x[-2:].normal_()
    x.requires_grad_()
    out, _ = pool(x, *window)
    part = x[-2:].detach().requires_grad_()
    expected, _ = pool(part, *window)
    assert torch.equal(out[-2:], expected)
    weights = torch.randn_like(expected)
    (grad,) = torch.autograd.grad(out[-2:], x, weights)
    expected.backward(weights)
    assert torch.equal(grad[-2:], part.grad)
    assert not grad[:-2].any()


@pytest.mark.gpu
@pytest.mark.parametrize("module", [MaxPool(3, stride=2, padding=1), AveragePool(2)], ids=repr)
def test_a_cuda_graph_replays_it(module):
    x = draw((4, 64, 12, 12), "cuda", torch.bfloat16).requires_grad_()

    def step():
        out = module(x)
        return out, torch.autograd.grad(out, x, torch.ones_like(out))[0]

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
