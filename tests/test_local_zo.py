from __future__ import annotations

import math
from importlib.util import find_spec

import pytest
import torch
from torch import nn

from quadspike import LIF, Network, QuadspikeError, Soma, create_model
from quadspike.call import Call
from quadspike.composition import Parts, objection
from quadspike.draws import Draws, share
from quadspike.randomness import Key
from quadspike.surrogates import LocalZO
from quadspike.taps import Taps
from tests.kernel_cases import check

kernels = pytest.mark.skipif(find_spec("triton") is None, reason="needs Triton")


def gradients(model, x, key, weights=None):
    """Gradients of the weights for one key, by a loss that is a sum over samples."""
    model.zero_grad(set_to_none=True)
    logits = model(x, key=key)
    (logits.square().sum() if weights is None else (logits * weights).sum()).backward()
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def network():
    soma = Soma(6, LIF(surrogate="local-zo"), norm=None)
    return Network(nn.Linear(5, 6), soma, nn.Linear(6, 2), timesteps=3).double()


def test_one_backward_by_hand():
    surrogate = LocalZO(delta=0.3, samples=4)
    v = torch.randn(4, 3, dtype=torch.float64)
    draws = Draws.of(Key(5, 6), "a", 4, v)
    got = surrogate.slope(v, surrogate.constants(LIF()), draws)
    words = [draws.word(v, number) for number in (0, 1)]
    fields = [words[0], words[0] >> 21, words[0] >> 42, words[1]]
    beyond = [(field % 2**21 + 0.5) / 2**21 for field in fields]
    z = [-torch.special.ndtri(chance.double() / 2) for chance in beyond]
    expected = sum((v.abs() < 0.3 * each) * each for each in z) / (2 * 0.3 * 4)
    assert max(each.max() for each in z) < 3
    torch.testing.assert_close(got, expected, rtol=0, atol=7e-5 / (2 * 0.3))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_z_has_the_distribution_of_a_normal_number_s_size(dtype):
    """All that can be drawn, in place of a sample."""
    surrogate = LocalZO(delta=0.5)
    chance = share(torch.arange(2**21), 0, dtype)
    one = surrogate.constants(LIF())._replace(share=chance)
    z = surrogate.derivative(torch.zeros(2**21, dtype=dtype), one).double()  # 2 delta = 1
    assert (z.diff() <= 0).all()
    assert (torch.erfc(z / math.sqrt(2)) - chance.double()).abs().max() < 8e-7
    exact = -torch.special.ndtri(chance.double() / 2)
    assert (z - exact).abs()[exact < 3].max() < 7e-5
    assert (z - exact).abs().max() < 6.1e-3
    assert z.mean().item() == pytest.approx(math.sqrt(2 / math.pi), abs=1e-6)
    assert z.square().mean().item() == pytest.approx(1, abs=5e-6)


def test_gradients_follow_the_key_the_layer_and_the_step():
    model, x = network(), torch.randn(3, 8, 5, dtype=torch.float64)
    base = gradients(model, x, Key(1, 2))
    assert torch.equal(base, gradients(model, x, Key(1, 2)))
    assert torch.equal(base, gradients(model, x, Key(torch.tensor(1), torch.tensor(2))))
    for other in (Key(2, 2), Key(1, 3)):
        assert not torch.equal(base, gradients(model, x, other))
    current = torch.full((2, 4, 3), 0.4, dtype=torch.float64, requires_grad=True)
    soma = Soma(3, LIF(beta=0.0, surrogate="local-zo"), norm=None)
    twice = Network(soma, soma, timesteps=2, input_rank=2)
    twice(current, key=Key(0, 0)).sum().backward()
    assert not torch.equal(current.grad[0], current.grad[1])  # another step, other draws


def test_the_split_of_a_batch_changes_nothing():
    model, x = network(), torch.randn(3, 8, 5, dtype=torch.float64)
    whole = gradients(model, x, Key(1, 2))
    parts = [
        gradients(model, x[:, first : first + size], Key(1, 2, first))
        for first, size in ((0, 3), (3, 5))
    ]
    torch.testing.assert_close(parts[0] + parts[1], whole, rtol=1e-10, atol=1e-12)


def test_without_a_key_draws_follow_torch_s_seed_and_evaluation_draws_nothing():
    model, x = network(), torch.randn(3, 8, 5, dtype=torch.float64)
    found = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        found.append(gradients(model, x, None))
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])
    before = torch.get_rng_state()
    with torch.no_grad():
        model.eval()(x)
    assert torch.equal(before, torch.get_rng_state())


def test_says_what_runs_and_why():
    soma = Soma(3, LIF(surrogate="local-zo"))
    assert soma.explain("cpu").backend == "reference"
    assert "random" in soma.explain("cpu").reason
    with pytest.raises(QuadspikeError, match="random"):
        Soma(3, LIF(surrogate="local-zo"), backend="vectorised")(torch.zeros(2, 2, 3))
    with pytest.raises(QuadspikeError, match="samples must be"):
        LocalZO(samples=0)


def test_traces_whole_with_a_key_on_the_device():
    x, key = torch.randn(4, 3, 8, 8), Key(torch.tensor(1), torch.tensor(2))
    neuron = LIF(surrogate="local-zo")
    eager, traced = (create_model("mlp", neuron=neuron, seed=0) for _ in range(2))
    compiled = torch.compile(traced, backend="aot_eager", fullgraph=True)
    compiled(x, key=key).square().sum().backward()
    got = torch.cat([p.grad.flatten() for p in traced.parameters()])
    torch.testing.assert_close(got, gradients(eager, x, key))


# -- by the kernels ------------------------------------------------------------------------


@kernels
@pytest.mark.parametrize(
    "case",
    [
        {"layout": "contiguous", "steps": 4},
        {"layout": "channels last", "dtype": torch.bfloat16, "residual": "before"},
        {"layout": "channels last", "steps": 4, "norm": "tebn", "neuron": "qif"},
        {"layout": "flat", "norm": "none", "steps": 1},
        {"layout": "one axis", "dtype": torch.bfloat16, "norm": "per step", "residual": "after"},
        {"layout": "channels last", "norm": "running", "static": True, "steps": 3},
        {"layout": "contiguous", "learned": "channel", "neuron": "glif"},
    ],
    ids=str,
)
def test_kernels_equal_the_reference(case, device):
    check({"neuron": "lif", **case, "surrogate": "local-zo"}, device)


@kernels
@pytest.mark.parametrize("samples", [1, 3, 4, 20])
def test_kernels_draw_what_the_reference_draws(samples, device):
    """Ones in, slopes out, to the last draw: of places in two halves of a batch, of all steps."""
    neuron = LIF(beta=0.0, surrogate=LocalZO(delta=2.0, samples=samples))
    x = torch.randn(6, 3, 4, 5, device=device).contiguous(memory_format=torch.channels_last)
    slopes = []
    for backend, first, last in (("reference", 0, 6), ("triton", 0, 2), ("triton", 2, 6)):
        soma = Soma(3, neuron, norm=None, backend=backend)
        given = torch.cat([x[first:last]] * 3).requires_grad_()
        call = Call(3, last - first, key=Key(2**40, torch.tensor(9, device=device), first))
        soma(given, call).sum().backward()
        slopes.append(given.grad.unflatten(0, (3, -1)))
    whole, *halves = slopes
    torch.testing.assert_close(torch.cat(halves, 1), whole, rtol=1e-6, atol=1e-6)
    assert len(whole.unique()) > whole.numel() / 3
    assert not torch.equal(whole[0], whole[1])


@kernels
def test_kernels_go_on_from_a_state_and_look_as_the_reference_does(device):
    """A chunk of time draws what its steps would draw in one call; rates pass the same slopes."""
    x = torch.randn(6, 4, 3, device=device)
    grads = []
    for backend, cuts in (("reference", (6,)), ("triton", (6,)), ("triton", (2, 4))):
        soma = Soma(3, LIF(surrogate="local-zo"), norm=None, backend=backend)
        given, states, loss = x.clone().requires_grad_(), {}, 0.0
        for part in given.split(cuts):
            call = Call(len(part), 4, taps=Taps(("rate",)), states=states, key=Key(1, 2))
            out = soma(part.flatten(0, 1), call)
            loss = loss + out.square().sum() + 3 * call.seen["Soma"]["rate"].square().sum()
        grads += torch.autograd.grad(loss, given)
    for got in grads[1:]:
        torch.testing.assert_close(got, grads[0], rtol=1e-5, atol=1e-6)


@kernels
def test_kernels_without_a_key_follow_torch_s_seed(device):
    soma = Soma(3, LIF(surrogate="local-zo"), norm=None, backend="triton")
    x, found = torch.randn(2, 4, 3, device=device), []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        given = x.clone().requires_grad_()
        found += torch.autograd.grad(soma(given).sum(), given)
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


@kernels
def test_kernels_trace_whole_with_a_key_on_the_device(device):
    x = torch.randn(6, 3, 4, 4, device=device)
    soma = Soma(3, LIF(surrogate="local-zo"), backend="triton").to(device)

    def run(x, step):
        return soma(x, Call(3, 2, key=Key(4, step)))

    traced = torch.compile(run, backend="aot_eager", fullgraph=True)
    for count in (1, 2):
        step, found = torch.tensor(count, device=device), []
        for function in (run, traced):
            given = x.clone().requires_grad_()
            found += torch.autograd.grad(function(given, step).square().sum(), given)
        torch.testing.assert_close(*found)


@kernels
def test_kernels_are_chosen_on_a_gpu():
    choice = Soma(3, LIF(surrogate="local-zo")).explain("cuda")
    assert choice == ("triton", "fused kernels for float32 on cuda")
    assert objection(Parts("lif", surrogate="local-zo", backend="triton")) == ""
    assert "random" in objection(Parts("lif", surrogate="local-zo", backend="vectorised"))
