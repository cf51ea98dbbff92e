from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from quadspike import LIF, Network, QuadspikeError, Soma, create_model
from quadspike.randomness import Key, bits
from quadspike.surrogates import LocalZO


def gradients(model, x, key, weights=None):
    """Gradients of the weights for one key, by a loss that is a sum over samples."""
    model.zero_grad(set_to_none=True)
    logits = model(x, key=key)
    (logits.square().sum() if weights is None else (logits * weights).sum()).backward()
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def network():
    soma = Soma(6, LIF(surrogate="local-zo"), norm=None)
    return Network(nn.Linear(5, 6), soma, nn.Linear(6, 2), timesteps=3).double()


def test_its_mean_is_the_gaussian_surrogate():
    surrogate = LocalZO(delta=0.5, samples=5)
    v = torch.linspace(-2, 2, 9, dtype=torch.float64)
    many = v[None].expand(40_000, 9)
    draws = surrogate.constants(LIF())._replace(key=Key(1, 2), place="here")
    slope = surrogate.derivative(many, draws)
    gaussian = torch.exp(-0.5 * (v / 0.5) ** 2) / math.sqrt(2 * math.pi) / 0.5
    error = slope.std(0) / math.sqrt(len(many)) + 1e-4
    assert gaussian.max().item() == pytest.approx(0.798, abs=1e-3)
    assert ((slope.mean(0) - gaussian).abs() < 4 * error).all()


def test_one_backward_by_hand():
    surrogate = LocalZO(delta=0.3, samples=2)
    v = torch.randn(4, 3, dtype=torch.float64)
    key = Key(5, 6)
    got = surrogate.derivative(v, surrogate.constants(LIF())._replace(key=key, place="a"))
    word = bits((4, 3), key, "a, word 0")
    shares = [((word >> shift) % 2**21 + 0.5) / 2**21 for shift in (0, 21)]
    z = [torch.special.ndtri((1 + share.double()) / 2) for share in shares]
    expected = sum((v.abs() < 0.3 * each) * each for each in z) / (2 * 0.3 * 2)
    torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-6)


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


def test_runs_on_the_reference_and_says_why():
    choice = Soma(3, LIF(surrogate="local-zo")).explain("cuda")
    assert choice.backend == "reference"
    assert "random" in choice.reason
    with pytest.raises(QuadspikeError, match="random"):
        Soma(3, LIF(surrogate="local-zo"), backend="vectorised")(torch.zeros(2, 2, 3))
    with pytest.raises(QuadspikeError, match="samples must be"):
        LocalZO(samples=0)


def test_traces_whole_with_a_key_on_the_device():
    x, key = torch.randn(4, 3, 8, 8), Key(torch.tensor(1), torch.tensor(2))
    neuron = LIF(surrogate="local-zo")
    eager, traced = (create_model("resnet8", neuron=neuron, seed=0) for _ in range(2))
    compiled = torch.compile(traced, backend="aot_eager", fullgraph=True)
    expected, got = gradients(eager, x, key), None
    compiled(x, key=key).square().sum().backward()
    got = torch.cat([p.grad.flatten() for p in traced.parameters()])
    torch.testing.assert_close(got, expected)
