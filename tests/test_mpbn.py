from __future__ import annotations

import copy
import pickle

import pytest
import torch
from torch import nn

from quadspike import LIF, QIF, QuadspikeError, Soma, create_model, load_model, save_model
from quadspike.call import Call
from quadspike.deploy import check_fold, fold, stream
from quadspike.deploy.fold import fold_membrane
from quadspike.neurons import NEURONS, create_neuron
from quadspike.norms import BatchNorm, synchronize
from quadspike.taps import Taps
from tests.conftest import calibrate
from tests.two_workers import of_two


def ready(neuron="lif"):
    """A soma whose norms are away from their start, one gain negative and one 0."""
    soma = Soma(5, neuron, norm="mpbn")
    for part in (soma.norm, soma.norm.membrane):
        nn.init.normal_(part.weight, 1, 0.3)
        nn.init.normal_(part.bias, 0, 0.3)
    with torch.no_grad():
        soma.norm.membrane.weight[1] = -0.8
        soma.norm.membrane.weight[3] = 0.0
    return soma


def test_runs_in_parts_and_says_why():
    soma = Soma(3, norm="mpbn")
    assert soma.explain().backend == "vectorised"
    assert "in parts" in soma.explain().reason
    assert "step before" in soma.explain().reason
    soma.norm.membrane = None
    assert "in parts" not in soma.explain().reason


def test_taps_see_the_membrane_that_meets_the_threshold():
    soma = ready().eval()
    call = Call(2, 4, taps=Taps(("membrane", "spikes")))
    soma(torch.randn(8, 5, 3, 3), call)
    seen = call.seen["Soma"]
    assert torch.equal(seen["spikes"], (seen["membrane"] >= 0.5).float())


@pytest.mark.parametrize("backend", ["reference", "vectorised", "triton"])
def test_grades_are_as_exact_in_half_precision_as_in_the_reference(backend):
    """They pass from step to step, where spikes are exact in any type."""
    soma = Soma(16, "lif", "mpbn", timesteps=8, backend=backend)
    soma.neuron.graded = True
    x, weights = torch.randn(2, 8, 8, 16, 4, 4).bfloat16()
    gradients = []
    for norm, dtype in ((soma, torch.bfloat16), (copy.deepcopy(soma).double(), torch.float64)):
        norm.backend = backend if dtype == torch.bfloat16 else "reference"
        given = x.to(dtype, copy=True).requires_grad_()
        norm(given).backward(weights.to(dtype))
        gradients.append(given.grad.double())
    found, truth = gradients
    assert (found - truth).norm() < 0.005 * truth.norm()


# -- folding -----------------------------------------------------------------------------


def spread(model):
    """Gains of both signs and none in every norm of a membrane."""
    for module in model.modules():
        if isinstance(module, BatchNorm):
            nn.init.normal_(module.weight, 0.8, 0.4)
            nn.init.normal_(module.bias, 0.1, 0.3)
    for soma in model.somas().values():
        with torch.no_grad():
            soma.norm.membrane.weight[::3] *= -1
            soma.norm.membrane.weight[::7] = 0
            soma.norm.membrane.bias[::14] = 0.9  # constant, and firing
    return model


def network(name="cnn", dtype=torch.float64, **options):
    channels = 1 if name == "cnn" else 3
    model = spread(create_model(name, in_channels=channels, norm="mpbn", timesteps=3, **options))
    x = torch.randn(24, channels, 8, 8, dtype=dtype)
    return calibrate(model.to(dtype), x), x


FOLDING = [name for name, kind in NEURONS.items() if not name.startswith("ternary")]


@pytest.mark.parametrize("neuron", FOLDING)
def test_folding_changes_no_spike(neuron):
    model, x = network(neuron=neuron)
    folded = fold(model)
    assert not any(isinstance(module, BatchNorm) for module in folded.modules())
    check = check_fold(model, folded, x)
    assert sum(layer.changed for layer in check.layers) == 0
    assert check.changed_spikes == 0
    sides = torch.cat([soma.neuron.side for soma in folded.somas().values()])
    assert set(sides.tolist()) == {-1, 0, 1}
    _, seen = model(x, taps="rate")
    assert all(values["rate"].min() > 0 for values in seen.values())


def test_a_folded_network_is_pickled_as_any_module_is():
    model, x = network()
    folded = fold(model)
    for again in (pickle.loads(pickle.dumps(folded)), copy.deepcopy(folded)):
        assert type(again.conv1.soma.neuron) is type(folded.conv1.soma.neuron)
        assert torch.equal(again(x), folded(x))


@pytest.mark.parametrize("form", [{}, {"residual": "sum-then-fire", "shortcut_neuron": False}])
def test_residual_networks_fold(form):
    model, x = network("resnet8", **form)
    assert check_fold(model, fold(model), x).changed_spikes == 0


def test_folding_changes_only_ties_in_float32():
    model, x = network(dtype=torch.float32)
    check = check_fold(model, fold(model), x)
    assert check.unexplained == 0
    assert check.changed_spikes < 1e-3


@pytest.mark.parametrize("backend", ["reference", "vectorised", "triton"])
@pytest.mark.parametrize("neuron", ["lif", "qif"])
def test_a_folded_soma_rides_the_fast_paths_with_the_same_gradients(neuron, backend):
    if backend == "triton":
        pytest.importorskip("triton")
    dtype = torch.float32 if backend == "triton" else torch.float64
    soma = ready(NEURONS[neuron](surrogate="arctan")).to(dtype)
    x = torch.randn(3, 8, 5, 2, 2, dtype=dtype) * 2
    soma(x)
    soma.eval()
    soma.norm.weight.data.fill_(1.0), soma.norm.bias.data.zero_()
    soma.norm.running_mean.zero_(), soma.norm.running_var.fill_(1 - soma.norm.eps)
    folded = copy.deepcopy(soma)
    fold_membrane(folded.neuron, soma.norm.membrane)
    folded.norm, folded.backend = None, backend
    assert folded.explain().backend == backend
    weights, grads = torch.randn_like(x), []
    for part in (soma, folded):
        given = x.clone().requires_grad_()
        out = part(given)
        grads += torch.autograd.grad((out * weights).sum(), given)
    assert torch.equal(folded(x), soma(x))
    torch.testing.assert_close(*grads, rtol=1e-4, atol=1e-5)


def test_thresholds_by_hand():
    def wide(*values):
        return torch.tensor(values, dtype=torch.float64)

    norm = BatchNorm(4, eps=0.0).double()
    with torch.no_grad():
        norm.weight.copy_(wide(2, -2, 0, 1e-320))  # the last: no number holds its threshold
        norm.bias.copy_(wide(0.1, 0.1, 0.5, 0.4))
        norm.running_mean.fill_(1.0)
        norm.running_var.fill_(4.0)
    soma = Soma(4, LIF(beta=0.0), norm=None).double()
    neuron = soma.neuron
    fold_membrane(neuron, norm)
    assert neuron.side.tolist() == [1, -1, 0, 0]
    # u - 1 + 0.1 >= 0.5 is u >= 1.4, and 1 - u + 0.1 >= 0.5 is u <= 0.6
    torch.testing.assert_close(neuron.edges[0][:2], wide(1.4, 0.6))
    u = wide(0.6, 1.0, 1.4)[None, :, None] + wide(1e-9, -1e-9, 0, 0)
    assert soma(u)[0].tolist() == [[0, 1, 1, 0], [0, 0, 1, 0], [1, 0, 1, 0]]
    assert all(value.isfinite().all() for value in neuron.buffers())


@pytest.mark.parametrize("neuron", ["lif", "qif", "glif"])
def test_a_folded_model_is_saved_loaded_streamed_and_explained(neuron, tmp_path):
    model, x = network(neuron=neuron)
    folded = fold(model)
    assert {layer.backend for layer in folded.explain()} == {"vectorised"}
    assert {layer.neuron for layer in folded.explain()} == {neuron}
    again = load_model(save_model(folded, tmp_path / "folded.safetensors")).eval()
    assert torch.equal(again(x), folded(x))
    live = stream(again)
    torch.testing.assert_close(torch.stack([live(x) for _ in range(3)]), model(x))
    _, seen = folded(x, taps=("window", "rate", "histogram"))
    _, before = model(x, taps=("window", "rate"))
    for name, values in seen.items():
        torch.testing.assert_close(values["window"], before[name]["window"])
        assert torch.equal(values["rate"], before[name]["rate"])


def test_thresholds_per_step_fold_too():
    soma = ready(LIF(u_th=torch.linspace(0.3, 0.7, 10).view(2, 5))).double()
    x = torch.randn(2, 16, 5, dtype=torch.float64)
    soma(x)
    folded = copy.deepcopy(soma.eval())
    fold_membrane(folded.neuron, soma.norm.membrane)
    folded.norm.membrane = None
    assert torch.equal(folded(x), soma(x))
    assert folded.neuron.bar.shape == (2, 5)


def test_a_soma_keeps_the_thresholds_of_a_folded_neuron():
    model, _ = network()
    folded = next(iter(fold(model).somas().values())).neuron
    copied = Soma(len(folded.side), folded, norm=None).neuron
    for name in ("bar", "side", "slope"):
        assert torch.equal(getattr(copied, name), getattr(folded, name))


def test_a_folded_neuron_is_refused_for_other_channels():
    model, _ = network()
    folded = next(iter(fold(model).somas().values())).neuron
    message = f"folded thresholds are for {len(folded.side)} channels, the input has 5"
    with pytest.raises(QuadspikeError, match=message):
        Soma(5, folded, norm=None)
    with pytest.raises(QuadspikeError, match=message):
        folded(torch.zeros(2, 3, 5))
    with pytest.raises(QuadspikeError, match="for no channels"):
        create_neuron(folded.config())(torch.zeros(2, 3, 5))


# -- across workers ----------------------------------------------------------------------


def _share(mine, soma, x, weights):
    soma = synchronize(copy.deepcopy(soma))  # given in shared memory
    part = x[:, mine].clone().requires_grad_()
    out = soma(part)
    (out * weights[:, mine]).sum().backward()
    return out, part.grad, soma.norm.membrane.running_var


def test_synchronised_workers_equal_one_process():
    soma = ready(QIF(surrogate="arctan")).double()
    x = torch.randn(3, 8, 5, 2, 2, dtype=torch.float64) * 2 + 1
    weights = torch.randn_like(x)
    parts = of_two(_share, soma, x, weights)
    whole = x.clone().requires_grad_()
    out = soma(whole)
    (out * weights).sum().backward()
    assert torch.equal(torch.cat([parts[0][0], parts[1][0]], 1), out)
    joined = torch.cat([parts[0][1], parts[1][1]], 1)
    torch.testing.assert_close(joined, whole.grad, rtol=1e-9, atol=1e-10)
    torch.testing.assert_close(parts[1][2], soma.norm.membrane.running_var)
