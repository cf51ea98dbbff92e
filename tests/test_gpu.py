"""What needs a GPU: `make test-gpu PYTHON=python3`."""

from __future__ import annotations

import copy

import pytest
import torch

from quadspike import create_model, create_neuron
from quadspike.deploy import check_fold, fold, stream
from quadspike.neurons import NEURONS
from quadspike.randomness import Key, uniform
from quadspike.surrogates import SURROGATES
from tests.conftest import calibrate

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("surrogate", SURROGATES)
@pytest.mark.parametrize("name", NEURONS)
def test_neurons_give_the_cpu_s_spikes_and_gradients(name, surrogate):
    neuron = create_neuron({"name": name, "surrogate": surrogate})
    x = torch.randn(6, 32, 8, 5, 5, dtype=torch.float64)
    on_cpu, on_gpu = x.clone().requires_grad_(), x.cuda().requires_grad_()
    expected, got = neuron(on_cpu), neuron(on_gpu)
    assert torch.equal(got.cpu(), expected)
    weights = torch.randn_like(x)
    (expected * weights).sum().backward()
    (got * weights.cuda()).sum().backward()
    torch.testing.assert_close(on_gpu.grad.cpu(), on_cpu.grad)


@pytest.mark.parametrize("residual", ["fire-then-sum", "sum-then-fire"])
def test_a_network_gives_the_cpu_s_logits_in_float64(residual):
    model = create_model("resnet8", residual=residual).double()
    x = torch.randn(8, 3, 16, 16, dtype=torch.float64)
    twin = copy.deepcopy(model).cuda()
    torch.testing.assert_close(twin(x.cuda()).cpu(), model(x))


@pytest.mark.parametrize(("name", "channels", "size"), [("resnet19", 3, 32), ("vggsnn", 2, 48)])
def test_the_paper_s_networks_train_a_step_in_bfloat16(name, channels, size):
    model = create_model(name, in_channels=channels).cuda()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(torch.randn(16, channels, size, size, device="cuda")).float().square().mean()
    loss.backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())


def test_draws_are_the_cpu_s_bits():
    key = Key(seed=2**40 + 7, step=123)
    assert torch.equal(uniform((1001,), key, "x", "cuda").cpu(), uniform((1001,), key, "x"))


def test_folding_and_streaming_on_the_gpu():
    x = torch.randn(16, 3, 16, 16, dtype=torch.float64, device="cuda")
    model = calibrate(create_model("resnet8", timesteps=3).double().cuda(), x)
    folded = fold(model)
    assert check_fold(model, folded, x).unexplained == 0
    live = stream(folded)
    torch.testing.assert_close(torch.stack([live(x) for _ in range(3)]), folded(x))


def test_a_training_step_can_be_captured_in_a_cuda_graph():
    model = create_model("resnet8").cuda()
    x = torch.randn(8, 3, 16, 16, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            model.zero_grad(set_to_none=True)
            model(x).square().mean().backward()
    torch.cuda.current_stream().wait_stream(side)
    model.zero_grad(set_to_none=True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = model(x).square().mean()
        loss.backward()
    fresh = torch.randn_like(x)
    x.copy_(fresh)
    graph.replay()
    captured = [p.grad.clone() for p in model.parameters()]
    twin = copy.deepcopy(model)
    twin.zero_grad(set_to_none=True)
    twin(fresh).square().mean().backward()
    for ours, theirs in zip(captured, twin.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs.grad, rtol=1e-3, atol=1e-4)
