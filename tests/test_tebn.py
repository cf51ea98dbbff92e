from __future__ import annotations

import pytest
import torch
from torch import nn

from quadspike import QuadspikeError, Recipe, Soma, create_model
from quadspike.deploy import fold, stream
from quadspike.norms import BatchNorm, TEBatchNorm, create_norm
from quadspike.training.schedule import make_optimizer


def formula(x, norm):
    """`p_t (weight (x - mean) / std + bias)`, statistics over time, batch and space."""
    axes = [axis for axis in range(x.ndim) if axis != 2]
    mean, var = x.mean(axes, keepdim=True), x.var(axes, correction=0, keepdim=True)
    shape = [1, 1, -1, *[1] * (x.ndim - 3)]
    y = norm.weight.view(shape) * (x - mean) / torch.sqrt(var + norm.eps) + norm.bias.view(shape)
    return norm.p[: len(x)].view(-1, *[1] * (x.ndim - 1)) * y


@pytest.mark.parametrize("shape", [(4, 6, 5, 3, 3), (4, 16, 5), (3, 6, 5, 3, 3)])
def test_equals_its_formula_in_float64_with_gradients(shape):
    norm = TEBatchNorm(5, timesteps=4).double()
    for parameter in norm.parameters():
        nn.init.normal_(parameter)
    x = (torch.randn(shape, dtype=torch.float64) * 3 + 2).requires_grad_()
    weights = torch.randn(shape, dtype=torch.float64)
    y, expected = norm(x), formula(x, norm)
    torch.testing.assert_close(y, expected, rtol=1e-12, atol=1e-12)
    inputs = [x, *norm.parameters()]
    got = torch.autograd.grad((y * weights).sum(), inputs)
    wanted = torch.autograd.grad((expected * weights).sum(), inputs)
    for ours, theirs in zip(got, wanted, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


def test_starts_as_plain_batch_norm_without_the_threshold():
    norm, plain = create_norm("tebn", 3, u_th=0.5, eta=0.7, timesteps=4), BatchNorm(3)
    assert norm.p.tolist() == [1, 1, 1, 1]
    x = torch.randn(4, 8, 3, 5, 5) * 2 + 1
    torch.testing.assert_close(norm(x), plain(x))
    torch.testing.assert_close(norm.running_var, plain.running_var)
    torch.testing.assert_close(norm.eval()(x), plain.eval()(x))


@pytest.mark.parametrize("backend", ["reference", "vectorised"])
def test_a_soma_is_the_neuron_behind_the_norm(backend):
    soma = Soma(3, "lif", norm="tebn", timesteps=4, backend=backend)
    nn.init.uniform_(soma.norm.p, -1, 2)
    x = torch.randn(4, 8, 3, 5, 5)
    assert soma.explain().backend == backend
    assert torch.equal(soma(x), soma.neuron(soma.norm(x)))


def test_streams_step_by_step_and_stops_at_its_last_step():
    model = create_model("cnn", in_channels=1, norm="tebn", timesteps=3)
    for soma in model.somas().values():
        nn.init.uniform_(soma.norm.p, 0.5, 2)
    x = torch.randn(16, 1, 8, 8)
    model(x)
    live = stream(model.eval())
    torch.testing.assert_close(torch.stack([live(x) for _ in range(3)]), model(x))
    with pytest.raises(QuadspikeError, match="parameters for 3 steps, step 4"):
        live(x)


def test_neither_factor_nor_weight_of_the_norm_decays():
    model = create_model("cnn", in_channels=1, norm="tebn", timesteps=2)
    recipe = Recipe("mine", dataset="digits", model="cnn", norm="tebn", weight_decay=0.1)
    decaying, others = make_optimizer(recipe, model).param_groups
    assert others["weight_decay"] == 0
    kept = {id(p) for p in others["params"]}
    assert all(id(p) in kept for soma in model.somas().values() for p in soma.norm.parameters())
    assert decaying["weight_decay"] == 0.1


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: Soma(3, norm="tebn"), "give timesteps"),
        (lambda: TEBatchNorm(3, timesteps=0), "timesteps must be"),
        (lambda: TEBatchNorm(3, timesteps=2)(torch.zeros(3, 4, 3)), "for 2 steps, step 3"),
        (lambda: TEBatchNorm(3, timesteps=2)(torch.zeros(4, 3)), r"takes \[T, B, C\]"),
        (lambda: Soma(3, norm="tebn", timesteps=1)(torch.zeros(2, 4, 3)), "for 1 steps, step 2"),
        (
            lambda: fold(create_model("cnn", in_channels=1, norm="tebn")),
            r"cannot fold layer 'conv1.soma'.*every step",
        ),
        (
            lambda: create_model(
                "resnet8", norm="tebn", residual="sum-then-fire", shortcut_neuron=False
            ),
            "needs a neuron",
        ),
    ],
)
def test_what_cannot_be_is_refused(act, message):
    with pytest.raises(QuadspikeError, match=message):
        act()
