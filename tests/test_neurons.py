from __future__ import annotations

import json
import math
import warnings

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import nn

from quadspike import LIF, QIF, QuadspikeError, QuadspikeWarning, Soma, create_neuron
from quadspike.neurons import NEURONS, check_partials
from quadspike.surrogates import ArcTan, Rectangle, Window
from tests.kernel_cases import STREAMED
from tests.own_neurons import Scaled


@pytest.mark.parametrize("name", NEURONS)
def test_handwritten_partials_equal_autograd(name):
    check_partials(create_neuron(name))


@pytest.mark.parametrize(
    ("line", "stated", "message"),
    [
        ("advance", (lambda u, o, x, p: (p.beta, 0.0, 1.0)), "gives 3 .* 6 are needed, in u, o, x"),
        (
            "advance",
            (lambda u, o, x, p: (p.beta * (1 - o), -p.beta * u, 1.0, u * (1 - o), 0.0, o)),
            r"Wrong\.advance_partials is wrong in o: ",
        ),
        (
            "advance",  # its first for spikes of 0 and 1 alone
            (lambda u, o, x, p: (p.beta * (1 - o) ** 2, -p.beta * u, 1.0, u * (1 - o), 0.0, o)),
            r"wrong in u: ",
        ),
        ("excess", (lambda u, p: (1.0, 1.0)), "wrong in u_th: 1 where autograd finds -1"),
    ],
)
def test_wrong_partials_are_found(line, stated, message):
    wrong = type("Wrong", (LIF,), {f"{line}_partials": staticmethod(stated)})
    with pytest.raises(QuadspikeError, match=message):
        check_partials(wrong())


class Raised(Scaled):
    """One whose learned constant moves its threshold."""

    @staticmethod
    def excess(u, p):
        return u - p.u_th * p.k

    @staticmethod
    def excess_partials(u, p):
        return 1.0, -p.k


def test_a_threshold_by_two_learned_constants_is_found():
    with pytest.raises(QuadspikeError, match=r"Raised\.excess depends on k, which is learned"):
        check_partials(Raised())
    check_partials(type("Slow", (Raised,), {"only_reference": "of its threshold"})())
    fixed = Raised()
    fixed.k.requires_grad_(False)
    check_partials(fixed)


def test_the_paper_s_default_parameters():
    neuron = QIF()
    assert (neuron.resting, neuron.critical) == (0.0, 4.5)
    assert neuron.surrogate == Window("threshold")
    assert LIF().surrogate == Rectangle(0.5, 1.0)


def test_a_membrane_exactly_at_the_threshold_fires():
    for neuron in (QIF(), LIF()):
        assert neuron(torch.tensor([[0.5]])).item() == 1.0
        below = torch.nextafter(torch.tensor(0.5), torch.tensor(0.0))
        assert neuron(below.view(1, 1)).item() == 0.0


def test_a_call_keeps_no_state():
    neuron = QIF()
    x = torch.randn(5, 3)
    assert torch.equal(neuron(x), neuron(x))
    assert not neuron.state_dict()


# -- roots and fixed points ------------------------------------------------------------


def allowed_biophysics():
    return st.tuples(
        st.floats(0.02, 3.0), st.floats(-2.0, 2.0), st.floats(0.05, 6.0), st.floats(0.0, 1.0)
    )


@given(allowed_biophysics())
@settings(max_examples=300, deadline=None)
def test_from_resting_and_its_inverse_agree(values):
    a, u_r, gap, place = values
    u_c = u_r + gap
    total, product = u_r + u_c - 1 / a, u_r * u_c
    discriminant = total**2 - 4 * product
    assume(abs(discriminant) > 1e-6)
    floor = (total + math.sqrt(discriminant)) / 2 if discriminant > 0 else total / 2
    assume(floor < u_c)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QuadspikeWarning)
        neuron = QIF.from_resting(a, u_r, u_c, u_th=floor + place * (u_c - floor))
    assert neuron.has_real_roots == (discriminant > 0)
    assert neuron.resting == pytest.approx(u_r, rel=1e-8, abs=1e-8)
    assert neuron.critical == pytest.approx(u_c, rel=1e-8, abs=1e-8)
    assert neuron.u_sum == pytest.approx(total, abs=1e-9)
    for fixed in (u_r, u_c):  # the recurrence leaves both where they are
        assert neuron.advance(fixed, 0.0, 0.0, neuron.constants()) == pytest.approx(fixed, abs=1e-7)


def test_paper_formula_orders_the_roots_with_the_smaller_first():
    above = QIF.from_resting(0.25, 0.0, 4.5)  # u_c > 1/a: the zero root comes first
    assert (above.u1, above.u2) == (0.0, 0.5)
    below = QIF.from_resting(0.25, 0.0, 3.0)  # u_c < 1/a: it comes second
    assert (below.u1, below.u2) == (-1.0, 0.0)


def test_roots_may_come_in_either_order():
    x = torch.randn(6, 100, dtype=torch.float64)
    one, other = QIF(u1=0.5, u2=-0.3), QIF(u1=-0.3, u2=0.5)
    assert torch.equal(one(x), other(x))
    assert one.resting == other.resting


def test_fixed_points_of_tensors_do_not_cancel():
    values = {"a": 0.001, "u1": 0.01, "u2": 0.5}
    learned = QIF(**{name: nn.Parameter(torch.tensor(v)) for name, v in values.items()})
    assert learned.resting.item() == pytest.approx(QIF(**values).resting, rel=1e-4)


def test_complex_roots_run_through_sum_and_product():
    neuron = QIF.from_resting(0.25, 0.1, 5.0, u_th=0.6)
    assert not neuron.has_real_roots
    assert (neuron.resting, neuron.critical) == pytest.approx((0.1, 5.0))
    x = torch.randn(4, 100, dtype=torch.float64)
    u = o = torch.zeros(100, dtype=torch.complex128)
    for t in range(4):
        f = 0.25 * (u - neuron.u1) * (u - neuron.u2)
        u = f * (1 - o) + x[t]
        o = (u.real >= 0.6).to(u.dtype)
    assert u.imag.abs().max() < 1e-12
    assert torch.equal(neuron(x)[-1], o.real)


# -- state -----------------------------------------------------------------------------


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=5),
    st.sampled_from(STREAMED),
    st.integers(0, 2**31),
)
@settings(max_examples=100, deadline=None)
def test_chunks_give_the_spikes_of_the_whole_sequence(chunks, name, seed):
    neuron = create_neuron(name)
    x = torch.randn(sum(chunks), 3, 4, generator=torch.Generator().manual_seed(seed))
    state, parts = None, []
    for part in x.split(chunks):
        spikes, state = neuron.run(part, state)
        parts.append(spikes)
    assert torch.equal(torch.cat(parts), neuron(x))
    assert state.step == sum(chunks)


def test_gradient_flows_through_a_carried_state():
    neuron, x = QIF(), torch.randn(4, 50, dtype=torch.float64)
    whole = x.clone().requires_grad_()
    neuron(whole).sum().backward()
    parts = x.clone().requires_grad_()
    first, state = neuron.run(parts[:2])
    second, _ = neuron.run(parts[2:], state)
    torch.cat([first, second]).sum().backward()
    torch.testing.assert_close(parts.grad, whole.grad)


# -- parameters per channel and per step -----------------------------------------------


def test_parameters_per_channel_are_one_neuron_a_channel():
    a = torch.tensor([0.1, 0.25, 0.4])
    x = torch.randn(5, 4, 3, 6)
    together = QIF(a=a)(x)
    for channel, value in enumerate(a.tolist()):
        assert torch.equal(together[:, :, channel], QIF(a=value)(x[:, :, channel]))


def test_parameters_per_step_end_with_their_last_step():
    neuron = LIF(beta=torch.tensor([[0.0, 0.0], [1.0, 1.0]]))
    x = torch.full((2, 1, 2), 0.3)
    assert neuron(x)[-1].tolist() == [[1.0, 1.0]]  # 0.3 + 1.0 * 0.3 >= 0.5
    with pytest.raises(QuadspikeError, match="parameters for 2 steps"):
        neuron(torch.zeros(3, 1, 2))
    _, state = neuron.run(x)
    with pytest.raises(QuadspikeError, match="step 3"):
        neuron.run(x[:1], state)


@pytest.mark.parametrize("backend", ["reference", "vectorised"])
def test_parameters_for_one_step_do_not_serve_more(backend):
    for soma in (Soma(2, LIF(beta=torch.zeros(1, 2))), Soma(2, "glif", timesteps=1)):
        soma.backend = backend
        assert soma(torch.zeros(1, 3, 2)).shape == (1, 3, 2)
        with pytest.raises(QuadspikeError, match="parameters for 1 steps"):
            soma(torch.zeros(2, 3, 2))


def fitted(name, channels, timesteps):
    neuron = create_neuron(name)
    neuron.fit(channels, timesteps)
    with torch.no_grad():
        for parameter in neuron.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return neuron


def test_config_makes_the_same_neuron_again():
    neurons = [
        QIF(a=0.3, surrogate=ArcTan(3.0), detach_reset=True),
        LIF(beta=0.5),
        QIF.from_resting(0.25, 0.1, 5.0, u_th=0.6),
        QIF(a=torch.tensor([0.1, 0.25])),
        LIF(beta=nn.Parameter(torch.tensor(0.5))),
        *map(create_neuron, STREAMED),
        fitted("glif", 2, 4),
    ]
    x = torch.randn(4, 3, 2)
    for neuron in neurons:
        again = create_neuron(json.loads(json.dumps(neuron.config())))
        assert torch.equal(again(x), neuron(x))
        assert again.config() == neuron.config()
        again.load_state_dict(neuron.state_dict())
        again.fit(2, 4)  # fits already where it did
        assert again.state_dict().keys() == neuron.state_dict().keys()


# -- numbers ---------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32_and_cannot_overflow(dtype):
    values = torch.tensor([6e4, -6e4, 300.0, -300.0, 0.4, -0.4])
    x = torch.stack([values, values.flip(0), torch.full((6,), 0.3)]).to(dtype)
    neuron = QIF()
    spikes = neuron(x)
    assert spikes.dtype == dtype
    assert torch.equal(spikes.double(), neuron(x.double()))


@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e30])
def test_a_membrane_that_is_no_longer_a_number_is_never_a_silent_one(bad):
    x = torch.zeros(3, 4)
    x[0, 1] = bad
    spikes = QIF()(x)
    assert not torch.isfinite(spikes[:, 1]).all()
    assert torch.isfinite(spikes[:, [0, 2, 3]]).all()


def test_spikes_have_the_input_s_dtype():
    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
        assert QIF()(torch.randn(2, 3).to(dtype)).dtype == dtype
