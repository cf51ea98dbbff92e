"""The fast paths as a part of the library: memory, states, taps, torch, workers, who runs."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils._pytree import tree_map_only

from quadspike import LIF, QIF, Network, QuadspikeError, Soma, ops
from quadspike.call import Call, Timed
from quadspike.deploy import stream
from quadspike.neurons import TrainedTernary
from quadspike.neurons.base import Neuron
from quadspike.norms import synchronize
from quadspike.ops import registration
from quadspike.taps import KINDS, Taps
from tests.kernel_cases import twins
from tests.two_workers import of_two


@pytest.fixture
def device(backend):
    return "cuda" if backend == "triton" and torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize(("residual", "kept"), [(None, 1), ("after", 1), ("before", 2)])
def test_only_activations_someone_holds_anyway_are_saved(residual, kept, device, backend):
    _, soma = twins(3, device, backend, residual=residual)
    x = torch.randn(8, 3, 6, 6, device=device, requires_grad=True)
    other = torch.randn_like(x).requires_grad_()
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t) or t, lambda t: t):
        soma(x, Call(4, 2), other if residual else None)
    large = [t.data_ptr() for t in saved if t.numel() >= x.numel()]
    assert sorted(large) == sorted(t.data_ptr() for t in (x, other)[:kept])


def test_other_memory_is_laid_out_first(device, backend):
    reference, fused = twins(4, device, backend, residual="before")
    x = torch.randn(5, 4, 3, 6, device=device).permute(3, 1, 2, 0)
    residual = torch.randn(6, 4, 3, 5, device=device).contiguous(memory_format=torch.channels_last)
    call = Call(3, 2)
    assert torch.equal(fused(x, call, residual), reference(x, call, residual))


@pytest.mark.parametrize("shape", [(4, 3), (4, 3, 5), (4, 3, 5, 6), (3, 2, 4, 2, 3, 2)])
def test_neurons_of_any_rank_stream_as_they_run(shape, device, backend):
    neuron, x = QIF(), torch.randn(shape, device=device)
    steps, batch = shape[:2]

    def run(part, before=None, backend=backend):
        flat = part.flatten(0, 1)
        given = {"steps": len(part), "batch": batch, "state": before, "backend": backend}
        return ops.soma(flat, neuron, **given)

    out, state, _ = run(x, backend="reference")
    expected, whole = out.view(shape), run(x)
    assert torch.equal(whole.out.view(shape), expected)
    torch.testing.assert_close(whole.state.u, state.u)
    first = run(x[:1])
    second = run(x[1:], first.state)
    assert torch.equal(torch.cat([first.out, second.out]).view(shape), expected)
    assert torch.equal(second.state.o, state.o)
    assert second.state.step == steps


def test_gradients_pass_through_a_state(device, backend):
    neuron, x = LIF(surrogate="arctan"), torch.randn(4, 3, 5, device=device)
    grads = []
    for kind in ("reference", backend):
        given = x.clone().requires_grad_()
        options = {"steps": 2, "batch": 3, "backend": kind}
        first = ops.soma(given[:2].flatten(0, 1), neuron, **options)
        second = ops.soma(given[2:].flatten(0, 1), neuron, state=first.state, **options)
        grads += torch.autograd.grad((second.out * torch.arange(5, device=device)).sum(), given)
    assert grads[0][:2].any()
    torch.testing.assert_close(*grads)


@pytest.mark.parametrize("kind", ["membrane", "mean"])
def test_a_loss_on_what_a_tap_sees_needs_no_output(kind, device, backend):
    """A residual added after the neuron has no part in it."""
    grads = []
    for each in ("reference", backend):
        torch.manual_seed(0)
        layers = [nn.Conv2d(2, 4, 3, padding=1), Soma(4, backend=each)]
        layers.append(_Adds(nn.Conv2d(4, 4, 3, padding=1), Soma(4, backend=each, residual="after")))
        net = Network(*layers, timesteps=2).to(device)
        _, seen = net(torch.randn(3, 2, 5, 5, device=device), taps=kind)
        sum(layer[kind].square().sum() for layer in seen.values()).backward()
        grads.append([p.grad for p in net.parameters()])
    assert grads[0][0].any()
    torch.testing.assert_close(*grads, rtol=1e-3, atol=1e-4)


class _Adds(Timed):
    """A block whose input is added to its spikes."""

    def __init__(self, synapse: nn.Module, soma: Soma) -> None:
        super().__init__()
        self.synapse, self.soma = synapse, soma

    def forward(self, x, call):
        return self.soma(self.synapse(x), call, x)


def test_a_network_streams_as_it_runs(device, backend):
    thresholds = torch.linspace(0.4, 0.7, 12).view(3, 4)
    layers = [
        nn.Linear(5, 4),
        Soma(4, backend=backend),
        nn.Linear(4, 4),
        Soma(4, QIF(u_th=thresholds.clamp(min=0.5)), norm=None, backend=backend),
        nn.Linear(4, 2),
    ]
    net = Network(*layers, timesteps=3).to(device).eval()
    frames = torch.randn(3, 6, 5, device=device)
    live = stream(net)
    with torch.no_grad():
        torch.testing.assert_close(torch.stack([live(frame) for frame in frames]), net(frames))
    with pytest.raises(QuadspikeError, match="step 4"):
        live(frames[0])


@pytest.mark.parametrize("norm", ["tdbn", "mpbn"])
@pytest.mark.parametrize("kind", [QIF, TrainedTernary])
def test_taps_see_what_they_see_in_the_reference(kind, norm, device, backend):
    seen, grads = [], []
    x = torch.randn(12, 3, 4, 4, device=device)
    for soma in twins(3, device, backend, neuron=kind(surrogate="triangle"), norm=norm):
        given = x.clone().requires_grad_()
        call = Call(3, 4, taps=Taps(tuple(set(KINDS) - {"output"})))
        out = soma(given, call)
        seen.append(call.seen["Soma"])
        loss = out.sum() + (seen[-1]["mean"] * torch.arange(3, device=device)).sum()
        loss = loss + seen[-1]["rate"].square().sum()
        grads += torch.autograd.grad(loss, given)
    assert set(seen[0]) == set(seen[1])
    for kind in seen[0]:
        torch.testing.assert_close(seen[1][kind], seen[0][kind])
    torch.testing.assert_close(*grads, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("kind", [QIF, TrainedTernary])
def test_a_membrane_that_is_no_number_stays_visible(value, kind, device, backend):
    x = torch.zeros(2, 4, device=device)
    x[0, 1] = value
    neuron = kind().to(device)
    result = ops.soma(x, neuron, steps=2, batch=1, backend=backend, keep_state=False)
    assert result.out.isnan().tolist() == [[False, True, False, False]] * 2
    assert result.state is None


# -- what torch makes of the operators ---------------------------------------------------


def arguments(device, backend, **changes):
    """What `quadspike::soma` is given by a small soma."""
    given = []

    def spy(*args):
        given.append(args)
        return registration.soma(*args)

    case = {"residual": None, "learned": None, "keep": False, **changes}
    options = {"a": nn.Parameter(torch.full((3,), 0.25))} if case["learned"] else {}
    soma = Soma(3, QIF(**options), norm=case["norm"], residual=case["residual"], backend=backend)
    x = torch.randn(4, 3, 2, 2, device=device).requires_grad_()
    residual = torch.randn_like(x).requires_grad_() if case["residual"] else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("quadspike.ops.fused.soma_operator", spy)
        taps = Taps(("membrane", "mean")) if case["keep"] else None
        soma.to(device)(x, Call(2, 2, taps=taps), residual)
    return given[0]


@pytest.mark.parametrize(
    "changes",
    [
        {"norm": "tdbn"},
        {"norm": None, "learned": True},
        {"norm": "tdbn", "residual": "before", "keep": True},
    ],
)
def test_the_operators_are_what_torch_expects(changes, device, backend):
    args = arguments(device, backend, **changes)
    torch.library.opcheck(registration.soma, args)
    out, _, mean, moments, affine = registration.soma(*args)
    g_mean = torch.randn_like(mean) if changes.get("keep") else None
    incoming = (torch.randn_like(out), None, g_mean, moments, affine, True, "1" + "0" * 4)
    wanted = incoming if changes.get("learned") else (*incoming[:6], "0" * 5)
    given = tree_map_only(torch.Tensor, torch.Tensor.detach, (*wanted, *args))
    checks = ("test_schema", "test_faketensor")
    torch.library.opcheck(registration.soma_backward, given, test_utils=checks)


@pytest.mark.parametrize(
    ("name", "norm"),
    [
        ("qif-learned", "tdbn"),
        ("glif", "tdbn"),
        ("ternary-trained", "tdbn"),
        ("plif", "mpbn"),
        ("im-lif", "bn"),
    ],
)
def test_compiles_whole_with_the_same_gradients(name, norm, device, backend):
    torch.compiler.reset()  # or the cases count as one that compiles ever again
    x = torch.randn(6, 3, 4, 4, device=device)
    results = []
    for wrap in (lambda f: f, lambda f: torch.compile(f, backend="aot_eager", fullgraph=True)):
        torch.manual_seed(1)
        soma = Soma(3, name, norm=norm, backend=backend, timesteps=3).to(device)
        given = x.clone().requires_grad_()
        out = wrap(lambda t, soma=soma: soma(t, Call(3, 2)))(given)
        out.square().sum().backward()
        learned = [parameter.grad for parameter in soma.neuron.parameters()]
        results.append((out, given.grad, *learned, soma.norm.running_var))
    for got, expected in zip(*results, strict=True):
        torch.testing.assert_close(got, expected)


# -- who runs ------------------------------------------------------------------------------


def test_explain_tells_the_truth():
    soma = Soma(3)
    assert soma.explain() == ("vectorised", "blocks in the cache for float32 on cpu")
    assert soma.explain(dtype=torch.float64).backend == "vectorised"
    assert soma.explain("mps").backend == "reference"
    assert Soma(3, backend="reference").explain("cuda") == ("reference", "asked for")
    assert Soma(3, backend="vectorised").explain() == ("vectorised", "asked for")
    with pytest.raises(QuadspikeError, match="for the CPU, not cuda"):
        Soma(3, backend="vectorised").explain("cuda")


def test_explain_tells_the_truth_about_kernels():
    pytest.importorskip("triton")
    soma = Soma(3)
    assert soma.explain("cuda").backend == "triton"
    assert soma.explain("cuda", torch.float64).backend == "reference"
    assert "float64" in soma.explain("cuda", torch.float64).reason
    assert "float64" in soma.double().explain("cuda").reason


class Plain(Neuron):
    """A neuron that states no partial derivatives."""

    name = "plain"
    advance = staticmethod(LIF.advance)

    def __init__(self):
        super().__init__()
        self.surrogate = LIF().surrogate


def test_a_neuron_without_partials_runs_on_the_reference(device, backend):
    choice = ops.choose("auto", Plain(), torch.device(device), torch.float32)
    assert choice == ("reference", "Plain has no advance_partials for its own advance")


class Squared(LIF):
    """LIF with another line, whose partials LIF's are not."""

    @staticmethod
    def advance(u, o, x, p):
        return p.beta * u * u * (1 - o) + p.u_reset * o + x


class Doubled(LIF):
    """LIF with another distance from its threshold."""

    @staticmethod
    def excess(u, p):
        return 2 * (u - p.u_th)


class SquaredWhole(Squared):
    """The same with its partials."""

    @staticmethod
    def advance_partials(u, o, x, p):
        silent = 1 - o
        return 2 * p.beta * u * silent, p.u_reset - p.beta * u * u, 1.0, u * u * silent, 0.0, o


class Deeper(SquaredWhole):
    """One that changes neither."""


def test_partials_of_other_lines_are_not_taken(device, backend):
    for kind, line in (Squared, "advance"), (Doubled, "excess"):
        choice = ops.choose("auto", kind(), torch.device(device), torch.float32)
        assert choice == ("reference", f"{kind.__name__} has no {line}_partials for its own {line}")
        given = [torch.linspace(-1, 1, 12).view(4, 3).requires_grad_() for _ in range(2)]
        for x, who in zip(given, ("auto", "reference"), strict=True):
            ops.soma(x, kind(), steps=4, batch=1, backend=who).out.sum().backward()
        assert torch.equal(given[0].grad, given[1].grad)
    for kind in SquaredWhole, Deeper:
        choice = ops.choose(backend, kind(), torch.device(device), torch.float32)
        assert choice == (backend, "asked for")


class Branching(LIF):
    """A neuron whose lines torch can run, and a tape cannot."""

    @staticmethod
    def advance(u, o, x, p):
        return torch.where(o > 0, p.u_reset, p.beta * u) + x

    advance_partials = staticmethod(LIF.advance_partials)


def test_a_neuron_that_is_no_plain_arithmetic_runs_on_the_reference():
    x = torch.randn(3, 2, 5)
    choice = ops.choose("auto", Branching(), torch.device("cpu"), torch.float32)
    assert choice.backend == "reference"
    assert "Branching" in choice.reason
    assert torch.equal(Branching()(x), LIF()(x))
    with pytest.raises(QuadspikeError, match="plain arithmetic"):
        ops.soma(x[0], Branching(), steps=1, batch=2, backend="vectorised")
    pytest.importorskip("triton")
    choice = ops.choose("auto", Branching(), torch.device("cuda"), torch.float32)
    assert choice.backend == "reference"
    assert "plain arithmetic" in choice.reason


@pytest.mark.parametrize(
    ("dtype", "interpreter", "message"),
    [(torch.float64, "1", "float64"), (torch.float32, "0", "for CUDA, not cpu")],
)
def test_kernels_that_cannot_run_are_refused_when_asked_for(
    dtype, interpreter, message, monkeypatch
):
    pytest.importorskip("triton")
    monkeypatch.setenv("TRITON_INTERPRET", interpreter)
    with pytest.raises(QuadspikeError, match=message):
        Soma(3, backend="triton")(torch.zeros(2, 2, 3, dtype=dtype))


def test_without_triton_the_reason_says_so(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "not installed" in Soma(3).explain("cuda").reason


# -- across workers ------------------------------------------------------------------------


def _share(mine, x, weights, backend):
    soma = synchronize(Soma(3, QIF(surrogate="arctan"), backend=backend))
    part = x[:, mine].clone().requires_grad_()
    out = soma(part)
    (out * weights[:, mine]).sum().backward()
    norm = soma.norm
    return out, part.grad, norm.weight.grad, norm.bias.grad, norm.running_var


@pytest.mark.skipif(torch.cuda.is_available(), reason="its workers use the interpreter")
def test_synchronised_workers_equal_one_process(backend):
    x, weights = torch.randn(2, 8, 3, 4, 4) * 2 + 5, torch.randn(2, 8, 3, 4, 4)
    alone = Soma(3, QIF(surrogate="arctan"), backend="reference")
    whole = x.clone().requires_grad_()
    out = alone(whole)
    (out * weights).sum().backward()
    parts = of_two(_share, x, weights, backend)
    assert torch.equal(torch.cat([parts[0][0], parts[1][0]], 1), out)
    joined = torch.cat([parts[0][1], parts[1][1]], 1)
    torch.testing.assert_close(joined, whole.grad, rtol=1e-4, atol=1e-5)
    for place, expected in ((2, alone.norm.weight.grad), (3, alone.norm.bias.grad)):
        torch.testing.assert_close(
            parts[0][place] + parts[1][place], expected, rtol=1e-4, atol=1e-4
        )
    torch.testing.assert_close(parts[1][4], alone.norm.running_var)
