from __future__ import annotations

import importlib.util
import json
import re
import sys

import pytest
import torch
from torch import nn

from quadspike.analysis.energy.counts import SynapseCount, count_operations
from quadspike.benchmark import PARTS, Job, Record, describe, find_setting, measure
from quadspike.benchmark.contenders import PEERS, Contender
from quadspike.benchmark.figure import scaling_figure
from quadspike.benchmark.floor import synapse_passes
from quadspike.benchmark.neurons import LoopNeuron, SpikingJellyKernels, spikingjelly_node
from quadspike.benchmark.profile import GROUPS, OTHER, Kernel, soma_bytes
from quadspike.benchmark.rebuild import rebuild
from quadspike.benchmark.record import summary_table
from quadspike.benchmark.setting import Setting
from quadspike.benchmark.steps import peer_steps
from quadspike.benchmark.timing import QUICK, timed
from quadspike.call import Timed
from quadspike.cli.bench import bench
from quadspike.data.geometry import Geometry
from quadspike.errors import QuadspikeError
from quadspike.losses import mean_cross_entropy
from quadspike.models import Network
from quadspike.models.pool import AveragePool, MaxPool
from tests.conftest import run_cli

CPU = torch.device("cpu")
WHERE = {"setting": "mine", "timesteps": 2, "batch": 4, "precision": "fp32"}
needs_spikingjelly = pytest.mark.skipif(
    importlib.util.find_spec("spikingjelly") is None, reason="SpikingJelly is not installed"
)


def small(name: str, **changes) -> Setting:
    """A setting with few pixels and samples, in fp32."""
    setting = find_setting(name)
    geometry = setting.geometry
    size = 16 if geometry.static else 32
    few = Geometry(geometry.channels, size, 10, geometry.static)
    changes = {"batch_size": 2, "timesteps": 2, "precision": "fp32", **changes}
    return Setting(setting.recipe, few).but(**changes)


def shapes_of(model: nn.Module, x: torch.Tensor) -> list[tuple]:
    """What every synapse is given, in order, and how it lies in memory."""
    seen = []

    def look(module, args) -> None:
        (x,) = args
        last = x.ndim < 4 or x.is_contiguous(memory_format=torch.channels_last)
        seen.append((tuple(module.weight.shape), tuple(x.shape), last))

    for module in model.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            module.register_forward_pre_hook(look)
    with torch.no_grad():
        model(x)
    return seen


@pytest.mark.parametrize("name", ["resnet19-wide", "vggsnn", "resnet8"])
def test_the_floor_holds_every_synapse_of_the_step(name: str) -> None:
    setting = small(name)
    model = setting.network(CPU)
    inputs, _ = setting.batch(CPU)
    passes = synapse_passes(model, inputs, torch.float32)
    one = inputs[:1] if setting.geometry.static else inputs[:, :1]
    layers = count_operations(model, one, 2).layers
    counted = [layer for layer in layers if isinstance(layer, SynapseCount)]
    batch = setting.recipe.batch_size
    assert [(p.name, p.macs) for p in passes] == [
        (c.layer, c.macs * c.evaluations * batch) for c in counted
    ]
    assert [p.first for p in passes] == [True] + [False] * (len(passes) - 1)


def test_the_floor_computes_the_gradients_of_the_synapse() -> None:
    setting = small("resnet8")
    inputs, _ = setting.batch(CPU)
    for synapse in synapse_passes(setting.network(CPU), inputs, torch.float32):
        x = synapse.x.clone().requires_grad_()
        weight = synapse.module.weight
        bias = synapse.module.bias
        out = synapse.module(x) - (0 if bias is None else bias)
        torch.testing.assert_close(synapse.forward(), out)
        grads = torch.autograd.grad(out, (x, weight), synapse.grad)
        g_x, g_weight, *_ = synapse.backward()
        assert (g_x is None) == synapse.first
        torch.testing.assert_close(g_weight, grads[1], rtol=1e-4, atol=1e-4)
        if g_x is not None:
            torch.testing.assert_close(g_x, grads[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["resnet19", "resnet19-wide", "vggsnn", "resnet8"])
@pytest.mark.parametrize("neuron", ["qif", "lif"])
def test_the_plain_network_is_ours(name: str, neuron: str) -> None:
    setting = small(name, neuron=neuron, precision="fp64")
    model = setting.network(CPU)
    twin = rebuild(model, setting.geometry.static, LoopNeuron).train()
    inputs, labels = setting.batch(CPU)
    logits, others = model(inputs), twin(inputs)
    torch.testing.assert_close(others, logits)
    mean_cross_entropy(logits, labels).backward()
    mean_cross_entropy(others, labels).backward()
    ours = synapses(model)
    theirs = synapses(twin)
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(other.weight.grad, mine.weight.grad)


@pytest.mark.parametrize(
    ("ours", "kind"),
    [(AveragePool(2, 1, 1, True), nn.AvgPool2d), (MaxPool(3, 2, 1, ceil_mode=True), nn.MaxPool2d)],
)
def test_the_plain_network_pools_with_torch(ours: nn.Module, kind: type) -> None:
    twin = rebuild(Network(ours, timesteps=1, input_rank=4), True, LoopNeuron).body[0]
    assert type(twin) is kind
    assert all(getattr(twin, name) == getattr(ours, name) for name in kind.__constants__)


def synapses(model: nn.Module) -> list[nn.Conv2d | nn.Linear]:
    return [module for module in model.modules() if isinstance(module, nn.Conv2d | nn.Linear)]


@needs_spikingjelly
@pytest.mark.parametrize("make", [spikingjelly_node, SpikingJellyKernels])
@pytest.mark.parametrize("neuron", ["qif", "lif"])
def test_spikingjelly_computes_our_equation(make, neuron: str) -> None:
    model = small("resnet8", neuron=neuron).network(CPU)
    ours = next(iter(model.somas().values())).neuron
    x = torch.randn(6, 4, 8, 5, 5)
    torch.testing.assert_close(make(ours)(x), ours(x))


@needs_spikingjelly
@pytest.mark.parametrize("name", ["resnet19", "resnet19-wide", "vggsnn"])
def test_spikingjelly_has_our_synapses(name: str) -> None:
    setting = small(name, neuron="lif")
    model = setting.network(CPU)
    inputs, _ = setting.batch(CPU)
    twin = rebuild(model, setting.geometry.static, SpikingJellyKernels).train()
    assert shapes_of(twin, inputs) == shapes_of(model, inputs)


def test_plain_activations_stay_channels_last() -> None:
    setting = small("resnet19")
    inputs, _ = setting.batch(CPU)
    twin = rebuild(setting.network(CPU), True, LoopNeuron)
    assert all(last for *_, last in shapes_of(twin, inputs))


def test_a_module_without_counterpart_is_refused() -> None:
    class Strange(Timed):
        pass

    net = Network(nn.Conv2d(1, 2, 3), Strange(), timesteps=2)
    with pytest.raises(QuadspikeError, match="Strange"):
        rebuild(net, True, LoopNeuron)


def test_one_that_fails_is_reported_and_the_rest_goes_on(monkeypatch) -> None:
    def broken(setting: Setting, device: torch.device):
        raise ImportError("no such library")

    monkeypatch.setitem(PEERS, "loop", Contender("broken", broken))
    job = Job(small("resnet8"), CPU, only=("loop", "ours-eager"), smoke=True)
    (row,) = peer_steps(job)
    assert row["error"] == "ImportError: no such library"
    assert "failed: ImportError" in describe({"part": "peers", **row})


def test_every_part_writes_well_formed_rows(tmp_path) -> None:
    path = tmp_path / "bench.json"
    record = Record(path, {"device": "here"})
    told: list[dict] = []
    job = Job(small("resnet8"), CPU, only=("ours-eager", "loop"), smoke=True)
    measure(job, tuple(PARTS), record, told.append)
    content = json.loads(path.read_text())
    assert content["rows"] == record.rows
    assert {row["part"] for row in told} == set(PARTS)
    for row in content["rows"]:
        assert "error" not in row, row
        assert {"name", "title", "setting", "timesteps", "batch", "precision"} <= row.keys()
        assert content["environments"][row["environment"]] == {"device": "here"}
        assert describe(row)
        assert row.get("ms", 1) > 0


def test_an_unknown_part_or_contender_is_refused_before_anything_runs() -> None:
    told: list[dict] = []
    record = Record(None, {})
    with pytest.raises(QuadspikeError, match="part"):
        measure(Job(small("resnet8"), CPU, smoke=True), ("stop",), record, told.append)
    mistaken = Job(small("resnet8"), CPU, only=("sj-lfi",), smoke=True)
    with pytest.raises(QuadspikeError, match="sj-lif"):
        measure(mistaken, ("step",), record, told.append)
    for_a_gpu = Job(small("resnet8"), CPU, only=("loop", "sj-lif-compiled"), smoke=True)
    with pytest.raises(QuadspikeError, match=r"sj-lif-compiled .* needs a GPU"):
        measure(for_a_gpu, ("peers",), record, told.append)
    elsewhere = Job(small("resnet8"), CPU, only=("ours-eager", "loop"), smoke=True)
    with pytest.raises(QuadspikeError, match=r"part peers, .* --what floor step peers"):
        measure(elsewhere, ("floor", "step"), record, told.append)
    assert not told


def test_rows_of_two_runs_are_merged(tmp_path) -> None:
    path = tmp_path / "bench.json"
    Record(path, {"device": "a"}).add({**WHERE, "part": "step", "name": "ours", "ms": 1.0})
    later = Record(path, {"device": "a", "torch": "newer"})
    later.add({**WHERE, "part": "floor", "name": "floor", "ms": 2.0})
    later.add({**WHERE, "part": "step", "name": "ours", "ms": 3.0})
    rows = json.loads(path.read_text())["rows"]
    assert [(row["name"], row["ms"], row["environment"]) for row in rows] == [
        ("ours", 3.0, 1),
        ("floor", 2.0, 1),
    ]


def test_a_failure_does_not_take_a_measurement_s_place(tmp_path) -> None:
    path = tmp_path / "bench.json"
    row = {**WHERE, "part": "step", "name": "ours"}
    record = Record(path, {"device": "a"})
    for result in ({"error": "no memory"}, {"ms": 1.0}, {"error": "no memory"}):
        record.add({**row, **result})
    assert [r.get("ms") for r in json.loads(path.read_text())["rows"]] == [1.0]


def test_rows_of_other_devices_and_of_smoke_are_told_apart(tmp_path) -> None:
    path = tmp_path / "bench.json"
    row = {**WHERE, "part": "step", "name": "ours"}
    Record(path, {"device": "a"}).add({**row, "ms": 1.0})
    Record(path, {"device": "b"}).add({**row, "ms": 2.0})
    Record(path, {"device": "a"}, smoke=True).add({**row, "ms": 3.0})
    for device, smoke, ms in (("a", False, 1.0), ("b", False, 2.0), ("a", True, 3.0)):
        assert [r["ms"] for r in Record(path, {"device": device}, smoke).comparable] == [ms]


def test_the_figure_of_scaling_holds_all_but_one_thing() -> None:
    recipe = find_setting("resnet8").recipe
    at = {"setting": recipe.name, "precision": recipe.precision, "part": "scaling"}
    at |= {"name": "by timesteps", "peak_gib": None}
    rows = [
        {**at, "timesteps": steps, "batch": recipe.batch_size * twice, "ms": float(steps * twice)}
        for steps in (1, 2, 4)
        for twice in (1, 2)
    ]
    ours = scaling_figure(rows, recipe).axes[0].lines[1]
    assert list(ours.get_xdata()) == [1, 2, 4]
    assert list(ours.get_ydata()) == [1.0, 2.0, 4.0]


@pytest.mark.parametrize(
    "text",
    ['{"mine": 1}', '{"format": 1, "environments": [], "rows": [{"environment": 3}]}'],
    ids=["foreign", "damaged"],
)
def test_another_file_is_not_overwritten(tmp_path, text) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(QuadspikeError, match="no benchmark record"):
        Record(path, {})
    assert path.read_text() == text


def test_the_table_compares_with_the_floor_and_spikingjelly() -> None:
    times = {"floor": 5.0, "ours": 10.0, "sj-lif": 20.0, "sj-qif": 40.0}
    rows = [
        {**WHERE, "part": "step", "name": name, "title": name, "peak_gib": None}
        | dict.fromkeys(("ms", "low", "high"), ms)
        for name, ms in times.items()
    ]
    recipe = small("resnet8", batch_size=4).but(name="mine").recipe
    table = summary_table(rows, recipe)
    assert list(table.columns[4].cells) == ["1.00 x", "2.00 x", "4.00 x", "8.00 x"]
    assert list(table.columns[6].cells) == ["4.00 x", "2.00 x", "1.00 x", "0.50 x"]


def test_the_median_is_timed() -> None:
    calls: list[int] = []
    timing = timed(lambda: calls.append(1), CPU, QUICK)
    assert timing.runs == 2
    assert timing.low <= timing.ms <= timing.high
    assert len(calls) == 1 + QUICK.warm_runs + 1 + timing.runs


@pytest.mark.parametrize(
    ("kernel", "group"),
    [
        ("statistics_kernel", "soma statistics"),
        ("backward_kernel", "soma backward"),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>", None),
        ("sm90_xmma_wgrad_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc", "synapses"),
        ("nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NTN", "synapses"),
        ("void multi_tensor_apply_kernel<FusedSgdMathFunctor<float, 3>>", "optimizer"),
        ("pool_backward_kernel", "pooling"),
        ("void at::native::reduce_kernel<512, 1, MeanOps>", OTHER),
    ],
)
def test_kernels_are_sorted_into_groups(kernel: str, group: str | None) -> None:
    assert Kernel(kernel, 1.0, 1).group == (group or "casts and copies")
    assert group is None or group in {OTHER, *(name for name, _ in GROUPS)}


def test_soma_bytes_count_eight_passes() -> None:
    setting = small("vggsnn")  # a clip: every soma gets as much as it gives
    somas = [
        layer.neurons
        for layer in count_operations(setting.network(CPU), setting.batch(CPU)[0][:, :1], 2).layers
        if not isinstance(layer, SynapseCount)
    ]
    recipe = setting.recipe
    elements = sum(somas) * recipe.timesteps * recipe.batch_size
    assert soma_bytes(Job(setting, CPU)) == 8 * 4 * elements


def test_an_unknown_setting_is_refused() -> None:
    with pytest.raises(QuadspikeError, match="resnet19"):
        find_setting("resnet91")


def test_a_table_of_nothing_is_not_shown(capsys) -> None:
    bench("resnet8", ("ceilings",), timesteps=1, batch=2, device="cpu", smoke=True)
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == 2
    assert re.search(r"  \d+\.\d\d TFLOP/s", shown[1])


@pytest.mark.parametrize("named", [True, False])
def test_a_library_that_is_missing_says_what_to_install(named, monkeypatch, capsys) -> None:
    monkeypatch.setitem(sys.modules, "snntorch", None)
    monkeypatch.setattr("quadspike.benchmark.steps.PEERS", {"snntorch": PEERS["snntorch"]})
    options = ["--only", "snntorch"] if named else []
    given = ("--device", "cpu", "--what", "peers", "--timesteps", "1", "--batch", "2", "--smoke")
    assert run_cli("bench", "resnet8", *given, *options) == int(named)
    said = "failed: snntorch is not installed here; pip install snntorch"
    assert said in capsys.readouterr().out


def test_the_command_prints_and_writes(tmp_path, capsys) -> None:
    path = tmp_path / "bench.json"
    what = ("step", "scaling")
    bench("resnet8", what, timesteps=1, batch=2, device="cpu", out=path, smoke=True)
    shown = capsys.readouterr().out
    assert "step: resnet8 T=1 B=2  quadspike, eager" in shown
    assert json.loads(path.read_text())["rows"][0]["name"] == "ours-eager"
    assert (tmp_path / "bench.scaling.png").stat().st_size > 0
