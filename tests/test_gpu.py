"""What needs a GPU: `make test-gpu PYTHON=python3`."""

from __future__ import annotations

import copy
import gc

import pytest
import torch
from torch import nn

from quadspike import LIF, Soma, create_model, create_neuron
from quadspike.call import Call
from quadspike.data.geometry import GEOMETRIES
from quadspike.data.loader import Batch
from quadspike.data.split import Split
from quadspike.deploy import check_fold, fold, stream
from quadspike.draws import Draws
from quadspike.models.files import read_tensors
from quadspike.neurons import NEURONS
from quadspike.randomness import Key, of_batch
from quadspike.surrogates import SURROGATES, create_surrogate
from quadspike.taps import Taps
from quadspike.training import Recipe
from quadspike.training.distributed import Workers
from quadspike.training.evaluate import evaluate
from quadspike.training.graph import CapturedCount, CapturedStep, choose_runners
from quadspike.training.muon import _directions
from quadspike.training.network import copy_weights, make_network, to_device
from quadspike.training.reproducible import algorithms
from quadspike.training.samples import random_batch
from quadspike.training.schedule import learning_rate, make_optimizer, set_learning_rate
from quadspike.training.scoring import score
from quadspike.training.sources import from_splits
from quadspike.training.spending import Spending
from quadspike.training.step import Step
from quadspike.training.trainee import Trainee
from tests.conftest import calibrate, run_cli

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("surrogate", [n for n in SURROGATES if not create_surrogate(n).draws])
@pytest.mark.parametrize("name", [name for name in NEURONS if name != "im-lif"])
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


@pytest.mark.parametrize(
    "options",
    [
        {"norm": "tebn"},
        {"norm": "mpbn"},
        {"neuron": "im-lif"},
        {"neuron": {"name": "lif", "surrogate": "evolving"}},
        {"neuron": {"name": "lif", "surrogate": "local-zo"}},
    ],
    ids=str,
)
def test_what_changes_with_time_is_seen_by_a_captured_graph(options):
    model = create_model("mlp", in_channels=1, timesteps=3, **options).cuda()
    assert {layer.backend for layer in model.explain()} == {"triton"}
    x, step = torch.randn(16, 1, 8, 8).cuda(), torch.zeros((), dtype=torch.int64).cuda()

    def gradients():
        model.zero_grad(set_to_none=True)
        model(x, key=Key(0, step)).square().sum().backward()
        return [p.grad for p in model.parameters()]

    with torch.cuda.stream(torch.cuda.Stream()):
        gradients()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = gradients()
    for share, count in ((0.0, 0), (0.7, 9)):
        step.fill_(count)
        for soma in model.somas().values():
            if soma.neuron.surrogate.evolves:
                soma.neuron.progress.fill_(share)
        graph.replay()
        got = [grad.clone() for grad in captured]
        for ours, theirs in zip(got, gradients(), strict=True):
            torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize(
    ("options", "taps", "most"),
    [
        ({"norm": "bn"}, None, 2),
        ({"norm": "bn"}, Taps(("mean",)), 2),
        ({"norm": "mpbn"}, None, 7),  # x, the membrane, and the spikes of all steps but the last
        ({"neuron": "im-lif", "norm": "bn"}, None, 10),  # x, currents, and mixed ones
    ],
    ids=str,
)
def test_bytes_a_soma_keeps_for_its_backward(options, taps, most):
    """For each membrane and step, in bfloat16 at T = 2."""
    x = torch.randn(32, 64, 32, 32, device="cuda", dtype=torch.bfloat16)
    x = x.contiguous(memory_format=torch.channels_last).requires_grad_()
    soma = Soma(64, **{"neuron": "lif", **options}, timesteps=2).cuda()
    kept = {}

    def pack(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        out = soma(x, Call(2, 16, taps=taps))
    assert out.dtype == torch.bfloat16
    assert sum(kept.values()) / x.numel() < most + 0.1


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
    assert torch.equal(of_batch((1001,), key, "x", "cuda").cpu(), of_batch((1001,), key, "x"))
    places = torch.empty(9), torch.empty(9, device="cuda")
    words = [Draws.of(key, "x", 5, each).at(3).word(each, 1).cpu() for each in places]
    assert torch.equal(*words)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("layout", [torch.channels_last, torch.contiguous_format])
def test_a_captured_backward_draws_for_every_step_what_the_reference_draws(layout, dtype):
    """LocalZO's kernels in a graph that is replayed, against the reference outside of one."""
    fused, reference = (
        Soma(24, LIF(surrogate="local-zo"), backend=backend).cuda()
        for backend in ("triton", "reference")
    )
    x = torch.randn(32, 24, 9, 9, device="cuda", dtype=dtype).contiguous(memory_format=layout)
    x.requires_grad_()
    weights, step = torch.randn_like(x), torch.zeros((), dtype=torch.int64, device="cuda")

    def gradients(soma):
        out = soma(x, Call(4, 8, key=Key(5, step, first=16)))
        return torch.autograd.grad(out, [x, soma.norm.weight, soma.norm.bias], weights)

    with torch.cuda.stream(torch.cuda.Stream()):
        gradients(fused)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = gradients(fused)
    seen = []
    for count in (3, 4):
        step.fill_(count)
        graph.replay()
        seen.append(captured[0].clone())
        # A draw within rounding of its membrane may fall on the other side, one of 300,000 at
        # best: it changes a few gradients of x, and sums of 2592 a little.
        expected = gradients(reference)
        apart = [(a - b).abs() / b.abs().max() for a, b in zip(captured, expected, strict=True)]
        assert (apart[0] > 0.01).double().mean() < 1e-3
        assert max(sums.max() for sums in apart[1:]) < 0.05
    assert not torch.equal(*seen)


@pytest.mark.parametrize("surrogate", [n for n in SURROGATES if not create_surrogate(n).draws])
def test_the_kernels_give_the_reference_s_gradients(surrogate):
    """On a GPU they have a sigmoid of their own, which no other test runs."""
    fused, reference = (
        Soma(24, {"name": "qif", "surrogate": surrogate}, backend=backend).cuda()
        for backend in ("triton", "reference")
    )
    x = torch.randn(32, 24, 9, 9, device="cuda").requires_grad_()
    weights = torch.randn_like(x)
    inputs = ([x, soma.norm.weight, soma.norm.bias] for soma in (fused, reference))
    found, expected = (
        torch.autograd.grad(soma(x, Call(4, 8)), each, weights)
        for soma, each in zip((fused, reference), inputs, strict=True)
    )
    # A membrane within rounding of the threshold or an edge may fall on the other side.
    apart = [(a - b).abs() / b.abs().max() for a, b in zip(found, expected, strict=True)]
    assert (apart[0] > 1e-4).double().mean() < 1e-3
    assert max(sums.max() for sums in apart[1:]) < 0.01


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


@pytest.mark.parametrize(
    "options",
    [
        {"optimizer": "sgd", "loss": "tet"},
        {"optimizer": "adam", "lr": 1e-3, "loss": "tet"},
        {"optimizer": "muon", "nesterov": True},
        {"aid": "sml", "loss": "im"},
        {"norm": "mpbn"},
        {"neuron": "im-lif", "surrogate": "rectangle"},
        {"aid": "shortcuts", "shortcut_form": "cosine"},
        {"aid": "imp", "loss": "lts"},
        {"surrogate": "local-zo", "loss": "tet"},
        {"ema": 0.9, "train_timesteps": 1, "full_epochs": 1},
        {"graded_epochs": 1, "small_size": 20, "small_epochs": 2},
    ],
)
def test_a_captured_step_follows_the_eager_one(options):
    """Bit for bit: dropout, the learning rate, the data and the epoch change without capturing
    anew; where the manner does no other graph holds their memory."""
    recipe = Recipe(
        "graph",
        "cifar10",
        "resnet8",
        precision="bf16",
        dropout=0.3,
        clip=1.0,
        epochs=3,
        deterministic=True,
        **options,
    )
    device, geometry = torch.device("cuda"), GEOMETRIES["cifar10"]
    batches = [random_batch(recipe, geometry, 32, device) for _ in range(12)]
    ends = []
    with algorithms(deterministic=True):
        for capture in (False, True):
            model = to_device(make_network(recipe, geometry), device).train()
            trainee = Trainee(model, recipe)
            step = Step(trainee, recipe, make_optimizer(recipe, trainee), Workers(), device, 4)
            learn = choose_runners(step, Spending())[0] if capture else step
            for number, batch in enumerate(batches):
                set_learning_rate(step.optimizer, learning_rate(recipe, number, 1))
                trainee.manner = recipe.manner_in(number // 4)
                learn(*batch)
            weights = copy_weights(nn.ModuleList([trainee, step.judged]))
            ends.append((weights, step.totals.clone(), int(step.count)))
    (eager, totals, count), (captured, same_totals, same_count) = ends
    assert count == same_count == 12
    assert torch.equal(totals, same_totals)
    for name, tensor in eager.items():
        assert torch.equal(tensor, captured[name]), name


@pytest.mark.parametrize(
    "options", [{"precision": "bf16"}, {"norm": "mpbn"}, {"neuron": "plif"}, {"ema": 0.9}]
)
def test_captured_evaluations_between_captured_steps_give_the_eager_figures(options):
    """Bit for bit, in memory that both share: 300 test samples are 128, 128 and 44."""
    recipe = Recipe(
        "graph", "cifar10", "resnet8", batch_size=32, epochs=4, deterministic=True, **options
    )
    device = torch.device("cuda")
    images = torch.randint(256, (300, 3, 32, 32), dtype=torch.uint8)
    split = Split("noise", images, torch.arange(300) % 10, tuple("0123456789"))
    data = from_splits(recipe, split, split, device, Workers())
    found = []
    with algorithms(deterministic=True):
        for capture in (False, True):
            model = to_device(make_network(recipe, data.geometry), device).train()
            trainee = Trainee(model, recipe)
            step = Step(trainee, recipe, make_optimizer(recipe, trainee), Workers(), device, 9)
            learn, count, _ = choose_runners(step, Spending())
            assert isinstance(learn, CapturedStep)
            assert isinstance(count, CapturedCount)
            scores = []
            for epoch in range(4):
                for batch in data.train.epoch(epoch):
                    (learn if capture else step)(*batch)
                used = count if capture else None
                scores.append(score(step.judged, data.test, recipe, device, Workers(), used))
            found.append((scores, copy_weights(trainee)))
    (scores, weights), (same_scores, same_weights) = found
    assert scores == same_scores
    assert len({one.loss for one in scores}) == 4
    assert {one.count for one in scores} == {300}
    assert all(torch.equal(weights[name], same_weights[name]) for name in weights)


def test_an_evaluation_s_graph_takes_the_step_s_memory():
    """An evaluation of as many samples fits into what the step's graph holds."""
    recipe = Recipe("graph", "cifar10", "resnet19", precision="bf16")
    device, geometry = torch.device("cuda"), GEOMETRIES["cifar10"]
    model = to_device(make_network(recipe, geometry), device).train()
    trainee = Trainee(model, recipe)
    step = Step(trainee, recipe, make_optimizer(recipe, trainee), Workers(), device, 9)
    learn, count, _ = choose_runners(step, Spending())
    batch = Batch(*random_batch(recipe, geometry, 256, device))
    learn(*batch)
    model.eval()
    held = []
    with torch.inference_mode():
        for _ in range(2):  # as it is, and captured
            count(batch)
            torch.cuda.empty_cache()
            held.append(torch.cuda.memory_reserved())
    assert held[1] - held[0] < 0.25 * 2**30  # by itself it would take 0.7 GiB


def test_a_captured_run_leaves_no_memory_behind():
    """Else a comparison's later methods seem to need more."""
    recipe = Recipe("graph", "cifar10", "resnet8", precision="bf16")
    device, geometry = torch.device("cuda"), GEOMETRIES["cifar10"]
    held = []
    for _ in range(3):
        trainee = Trainee(to_device(make_network(recipe, geometry), device).train(), recipe)
        step = Step(trainee, recipe, make_optimizer(recipe, trainee), Workers(), device, 9)
        learn, _, _ = choose_runners(step, Spending())
        learn(*random_batch(recipe, geometry, 16, device))
        del trainee, step, learn
        gc.collect()
        held.append(torch.cuda.memory_allocated())
    assert held[2] <= held[0] + 2**20


def test_a_spoilt_step_is_found_in_a_graph():
    recipe = Recipe("graph", "cifar10", "resnet8", precision="bf16")
    device, geometry = torch.device("cuda"), GEOMETRIES["cifar10"]
    model = to_device(make_network(recipe, geometry), device).train()
    trainee = Trainee(model, recipe)
    step = Step(trainee, recipe, make_optimizer(recipe, trainee), Workers(), device, 4)
    learn = CapturedStep(step)
    inputs, labels = random_batch(recipe, geometry, 16, device)
    learn(inputs, labels)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    learn(inputs * float("nan"), labels)
    learn(inputs, labels)
    assert step.spoilt.item() == 1
    assert int(step.count) == 1
    assert all(torch.equal(before[name], p) for name, p in model.named_parameters())


def test_a_run_on_a_gpu_resumes_to_the_same_bits(tmp_path):
    arguments = ["train", "digits-cnn", "--epochs", "3", "--deterministic", "--device", "cuda"]
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert run_cli(*arguments, "--out", str(whole)) == 0
    again = [*arguments, "--out", str(parts), "--resume"]
    assert run_cli(*again, "--stop-after", "0.0001") == 75
    assert run_cli(*again) == 0
    one, other = (read_tensors(folder / "last.safetensors") for folder in (whole, parts))
    assert all(torch.equal(one[name], other[name]) for name in one)
    found = evaluate(whole, device="cuda")
    assert found.fresh.accuracy == found.recorded
    elsewhere = evaluate(whole, device="cpu")
    assert abs(elsewhere.fresh.accuracy - found.recorded) <= 0.003  # one of 359 digits


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="one GPU alone has no second one")
def test_any_gpu_can_be_trained_on(tmp_path):
    for number in (0, 1):
        place = ["--device", f"cuda:{number}", "--out", str(tmp_path / f"{number}")]
        assert run_cli("train", "digits-mlp", "--epochs", "1", "--deterministic", *place) == 0
    first, second = (read_tensors(tmp_path / n / "last.safetensors") for n in "01")
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_muon_turns_in_bf16_as_in_float32():
    generator = torch.Generator().manual_seed(0)
    shapes = [(128, 64, 3, 3), (512, 256, 3, 3), (256, 128, 1, 1), (64, 3, 3, 3), (256, 512)]
    weights = [torch.randn(shape, generator=generator) for shape in shapes]
    on_gpu = [weight.to("cuda", memory_format=_format(weight)) for weight in weights]
    for one, other in zip(_directions(weights), _directions(on_gpu), strict=True):
        assert float((one * other.float().cpu()).sum()) > 0.99  # both are of length 1


def _format(weight):
    return torch.channels_last if weight.ndim == 4 else torch.contiguous_format
