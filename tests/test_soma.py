from __future__ import annotations

import pytest
import torch

from quadspike import LIF, QIF, QuadspikeError, Soma
from quadspike.call import Call
from quadspike.ops import reference


def test_is_the_neuron_after_the_norm():
    soma = Soma(3)
    x = torch.randn(4, 8, 3, 5, 5)
    current = soma.norm.eval()(x)
    assert torch.equal(soma.eval()(x), QIF()(current))


@pytest.mark.parametrize("neuron", ["qif", "lif"])
def test_residual_before_is_sum_then_fire_and_after_is_fire_then_sum(neuron):
    x, residual = torch.randn(4, 8, 3, 5, 5), (torch.rand(4, 8, 3, 5, 5) < 0.3).float()
    before = Soma(3, neuron, residual="before").eval()
    after = Soma(3, neuron, residual="after").eval()
    current = before.norm(x)
    assert torch.equal(before(x, residual=residual), before.neuron(current + residual))
    assert torch.equal(after(x, residual=residual), after.neuron(current) + residual)


def test_a_single_step_is_broadcast_over_time_like_its_copies():
    one, many = Soma(3, residual="after"), Soma(3, residual="after")
    x = torch.randn(5, 3, 4, 4, requires_grad=True)
    residual = torch.randn(5, 3, 4, 4)
    call = Call(timesteps=4, batch=5)
    y = one(x, call, residual)
    copies = x.detach().repeat(4, 1, 1, 1).requires_grad_()
    z = many(copies, call, residual.repeat(4, 1, 1, 1))
    assert torch.equal(y, z)
    y.sum().backward(), z.sum().backward()
    torch.testing.assert_close(x.grad, copies.grad.view(4, *x.shape).sum(0), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(one.norm.running_var, many.norm.running_var)


def test_the_norm_takes_its_threshold_from_the_neuron():
    soma = Soma(3, LIF(u_th=0.8), eta=0.5)
    assert soma.norm.gain == pytest.approx(0.4)


def test_bfloat16_in_gives_bfloat16_out_with_float32_inside():
    soma, x = Soma(3), torch.randn(2, 8, 3, 5, 5)
    half = x.bfloat16()
    assert soma(half).dtype == torch.bfloat16
    assert torch.equal(Soma(3)(half), Soma(3)(half.float()).bfloat16())


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (
            lambda: Soma(3)(torch.zeros(2, 2, 4, 3, 3)),
            r"for 3 channels takes \[T, B, 3, ...\].*\(2, 2, 4, 3, 3\); inside a network .*call",
        ),
        (lambda: Soma(3)(torch.zeros(2, 3)), r"got \(2, 3\)"),
        (lambda: Soma(3)(torch.zeros(0, 2, 3, 3, 3)), "has an empty axis"),
        (lambda: Soma(3)(torch.zeros(2, 2, 3, 3, 3, dtype=torch.int)), "floating"),
        (lambda: Soma(3)(*[torch.zeros(2, 2, 3)], residual=torch.zeros(2, 2, 3)), "no residual"),
        (lambda: Soma(3, residual="after")(torch.zeros(2, 2, 3)), "residual='after', got none"),
        (lambda: Soma(3, residual="middle"), "residual place"),
        (lambda: Soma(3)(torch.zeros(2, 2, 3), torch.zeros(2, 2, 3)), "give a residual by name"),
        *(
            (
                lambda n=n: Soma(3, residual="after")(
                    torch.zeros(4, 2, 3, 5), residual=torch.zeros(n)
                ),
                "does not fit",
            )
            for n in ((2, 4, 3, 5), (4, 2, 3, 4))
        ),
        *(
            (lambda n=n: Soma(3)(torch.zeros(n, 3), Call(4, 2)), r"one step or all: .*4 \* 2")
            for n in (4, 5, 16)
        ),
        (lambda: Soma("3", norm=None), "channels must be a whole number >= 1, got '3'"),
        (lambda: Soma(3, QIF), "such as QIF"),
        (lambda: Soma(3, None), "such as QIF"),
        (lambda: Soma(3, neuron="qiff"), "did you mean 'qif'"),
        (lambda: Soma(3, norm="batch"), "unknown norm"),
        (lambda: Soma(3, QIF(a=torch.full((4,), 0.2))), "4 channels"),
        (lambda: Soma(3, backend="tritn"), "did you mean 'triton'"),
    ],
)
def test_bad_input_is_refused(act, message):
    with pytest.raises(QuadspikeError, match=message):
        act()


@pytest.mark.parametrize("place", ["before", "after"])
def test_the_reference_rounds_a_gradient_that_comes_from_many_steps_once(place):
    image, joined = torch.randn(2, 6, 4, 5, 5).bfloat16()
    weights = torch.rand(8 * 6, 4, 5, 5).bfloat16().float()

    def gradients(dtype):
        soma = Soma(4)
        x, residual = (each.to(dtype, copy=True).requires_grad_() for each in (image, joined))
        options = {"norm": soma.norm, "residual": residual, "place": place}
        found = reference.soma(x, soma.neuron, steps=8, batch=6, **options)
        (found.out.float() * weights).sum().backward()
        return x.grad, residual.grad

    once = [gradient.bfloat16() for gradient in gradients(torch.float32)]
    for narrow, expected in zip(gradients(torch.bfloat16), once, strict=True):
        torch.testing.assert_close(narrow, expected, rtol=0.008, atol=0)
