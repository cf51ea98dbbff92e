from __future__ import annotations

import itertools
import json
import math
import random

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn

from quadspike import LIF, QIF, QuadspikeError, create_model, list_models, load_model, save_model
from quadspike.analysis.energy import energy
from quadspike.checksum import checksum
from quadspike.deploy import fold
from quadspike.neurons import NEURONS
from quadspike.norms import TDBatchNorm
from quadspike.surrogates import SURROGATES, ArcTan
from tests.conftest import calibrate

SIZES = {"resnet19": (3, 16), "resnet34": (3, 64), "vggsnn": (2, 32), "resnet8": (3, 16)}
COMBINATIONS = [
    (name, residual)
    for name, residual in itertools.product(list_models(), ["fire-then-sum", "sum-then-fire"])
    if residual == "fire-then-sum" or name.startswith("resnet")
]


def make(name, **options):
    channels, size = SIZES.get(name, (1, 8))
    model = create_model(name, in_channels=channels, image_size=size, seed=0, **options)
    return model, torch.randn(4, channels, size, size)


@pytest.mark.parametrize(("name", "residual"), COMBINATIONS)
def test_every_model_trains_a_step_with_finite_gradients_for_every_parameter(name, residual):
    for neuron in ("qif", "lif"):
        model, x = make(name, residual=residual, neuron=neuron, num_classes=7, timesteps=2)
        logits = model(x)
        assert logits.shape == (2, 4, 7)
        nn.functional.cross_entropy(logits.mean(0), torch.arange(4)).backward()
        for label, parameter in model.named_parameters():
            assert parameter.grad is not None, label
            assert torch.isfinite(parameter.grad).all(), label


def test_a_seed_decides_the_weights_and_leaves_torch_s_generator_alone():
    before = torch.get_rng_state()
    one, again, other = (create_model("cnn", seed=seed) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(map(torch.equal, one.parameters(), again.parameters()))
    assert not torch.equal(one.conv1[0].weight, other.conv1[0].weight)


def etas(model):
    return {name: m.eta for name, m in model.named_modules() if isinstance(m, TDBatchNorm)}


def test_eta_is_one_but_where_branches_meet_before_a_neuron():
    assert set(etas(make("resnet19")[0]).values()) == {1.0}
    values = etas(make("resnet19", residual="sum-then-fire")[0])
    for name, eta in values.items():
        expected = 1 / math.sqrt(2) if ".second." in name else 1.0
        assert eta == pytest.approx(expected), name


def test_eta_and_the_initial_gain_hold_in_every_layer():
    form = {"residual": "sum-then-fire", "shortcut_neuron": False, "identity_norm": True}
    model = make("resnet8", eta=0.3, initial_gain=0.8, **form)[0]
    assert set(etas(model).values()) == {0.3}
    assert len(etas(model)) == 1 + 3 * 3
    for norm in (m for m in model.modules() if isinstance(m, TDBatchNorm)):
        assert norm.gain == pytest.approx(0.15)
        assert norm.weight.tolist() == pytest.approx([0.8] * norm.channels)


def test_normalised_branches_sum_to_the_threshold_s_spread():
    """What the neuron of a sum-then-fire block then receives is N(0, u_th^2), as elsewhere."""
    spreads = {}
    for norm in (True, False):
        options = {"residual": "sum-then-fire", "shortcut_neuron": False, "identity_norm": norm}
        model, x = make("resnet8", timesteps=1, **options)
        _, seen = model(x, taps="membrane")  # at the first step it is the current
        spreads[norm] = seen["layer1.0.second.soma"]["membrane"].std(correction=0).item()
        mean = seen["layer1.0.second.soma"]["membrane"].mean().item()
        assert (abs(mean) < 0.01) == norm
    assert spreads[True] == pytest.approx(0.5, abs=0.05)
    assert model.layer1[0].shortcut(x, None) is x


def test_a_normalised_identity_survives_the_disk_and_is_not_folded(tmp_path):
    model, x = make("resnet8", residual="sum-then-fire", identity_norm=True, eta=1.0)
    again = load_model(save_model(calibrate(model, x), tmp_path / "m.safetensors")).eval()
    assert torch.equal(again(x), model(x))
    with pytest.raises(QuadspikeError, match=r"layer1.0.shortcut.norm.*no weights to take it in"):
        fold(model)
    assert "layer1.0.shortcut.norm" in " ".join(energy(model, (3, 16, 16), rates=0.1).uncounted)


def test_the_stem_s_width_and_the_shortcut_s_neuron_are_options():
    model, x = make("resnet8", residual="sum-then-fire", shortcut_neuron=False, stem_width=24)
    assert model.stem[0].out_channels == 24
    assert not [name for name in model.somas() if "shortcut" in name]
    shortcut = model.layer2[0].shortcut[1]
    assert (shortcut.eta, shortcut.u_th) == pytest.approx((1 / math.sqrt(2), 0.5))
    assert model(x).shape == (2, 4, 10)


def test_resnet19_is_nineteen_weight_layers_and_its_shortcuts_fire():
    model = create_model("resnet19")
    weights = [m for m in model.modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    shortcuts = [m for m in weights if isinstance(m, nn.Conv2d) and m.kernel_size == (1, 1)]
    assert len(weights) - len(shortcuts) == 19
    assert len(shortcuts) == 3
    names = list(model.somas())
    assert [name for name in names if "shortcut" in name] == [
        f"layer{stage}.0.shortcut.soma" for stage in (1, 2, 3)
    ]
    assert sum(p.numel() for p in model.parameters()) == 12_631_114


def test_pooled_stem_of_resnet34_can_be_max_or_average():
    assert isinstance(make("resnet34")[0].pool, nn.MaxPool2d)
    assert isinstance(make("resnet34", stem_pool="avg")[0].pool, nn.AvgPool2d)


def test_resnets_drop_out_before_the_classifier_when_asked():
    model = create_model("resnet19", dropout=0.6)
    assert list(dict(model.named_children()))[-2:] == ["dropout", "classifier"]
    assert model.dropout.p == 0.6
    assert "dropout" not in dict(create_model("resnet19").named_children())


def test_convolutions_start_kaiming_normal_by_fan_out():
    weight = create_model("resnet19", seed=0).layer1[0].first[0].weight  # 64 -> 128
    assert weight.std().item() == pytest.approx((2 / (9 * 128)) ** 0.5, rel=0.02)


def test_a_neuron_given_as_a_prototype_is_copied_into_every_layer():
    prototype = QIF(a=0.3, surrogate="arctan")
    model, _ = make("resnet8", neuron=prototype)
    neurons = [soma.neuron for soma in model.somas().values()]
    assert len({id(neuron) for neuron in neurons}) == len(neurons)
    assert all(neuron.config() == prototype.config() for neuron in neurons)


def test_without_a_norm_synapses_have_a_bias():
    model, x = make("cnn", norm=None)
    assert all(soma.norm is None for soma in model.somas().values())
    assert model.conv1[0].bias is not None
    model(x)


# -- files -----------------------------------------------------------------------------


@pytest.mark.parametrize("neuron", ["qif", LIF(beta=0.5), QIF(surrogate="arctan")])
def test_a_saved_model_comes_back_the_same(tmp_path, neuron):
    model, x = make("resnet8", neuron=neuron, residual="sum-then-fire", readout="last")
    calibrate(model, x)
    path = save_model(model, tmp_path / "runs" / "model.safetensors")
    again = load_model(path).eval()
    assert again.config == model.config
    assert again.readout == "last"
    assert torch.equal(again(x), model(x))
    assert load_model(path, timesteps=5).timesteps == 5
    assert [p.name for p in path.parent.iterdir()] == ["model.safetensors"]


def test_every_option_and_every_later_change_is_saved(tmp_path):
    model = create_model(
        "resnet34", dropout=0.3, stem_width=8, stem_pool="avg", shortcut_neuron=False,
        residual="sum-then-fire", num_classes=3, in_channels=2,
    ).double()  # fmt: skip
    model.timesteps, model.readout = 7, "last"
    again = load_model(save_model(model, tmp_path / "m"))
    assert (again.timesteps, again.readout) == (7, "last")
    assert again.classifier.weight.dtype == torch.float64
    assert str(again) == str(model)
    sized = create_model("mlp", image_size=5, in_channels=1)
    assert str(load_model(save_model(sized, tmp_path / "s"))) == str(sized)


def test_a_part_that_could_not_be_loaded_is_not_saved(tmp_path, monkeypatch):
    class Mine(LIF):
        name = "mine"

    class Nameless(LIF):
        """Would be loaded as a LIF."""

    class Slope(ArcTan):
        name = "slope"

    for neuron, said in (
        (Mine(), r"layer 'conv1.soma' has a Mine.*NEURONS\['mine'\] = Mine"),
        (Nameless(), "Nameless, .* under a name of its own"),
        (LIF(surrogate=Slope()), r"SURROGATES\['slope'\] = Slope"),
    ):
        with pytest.raises(QuadspikeError, match=said):
            save_model(create_model("cnn", neuron=neuron), tmp_path / "m")
    monkeypatch.setitem(NEURONS, "mine", Mine)
    monkeypatch.setitem(SURROGATES, "slope", Slope)
    model = create_model("cnn", neuron=Mine(surrogate=Slope()))
    again = load_model(save_model(model, tmp_path / "m"))
    assert str(again) == str(model)
    assert type(again.conv1.soma.neuron) is Mine


def test_only_a_network_itself_is_saved(tmp_path):
    wrapped = torch.compile(make("cnn")[0], backend="eager")  # its weights have other names
    with pytest.raises(QuadspikeError, match="got OptimizedModule; of one that was"):
        save_model(wrapped, tmp_path / "model.safetensors")
    assert not list(tmp_path.iterdir())


def test_damaged_and_foreign_files_are_refused(tmp_path):
    path = save_model(make("cnn")[0], tmp_path / "model.safetensors")
    cases = {
        "cut": (path.read_bytes()[:-100], "cannot read"),
        "noise": (b"\x00" * 64, "cannot read"),
        "empty": (b"", "cannot read"),
        "newer": (path.read_bytes().replace(b'\\"format\\": 1', b'\\"format\\": 2'), "format 2"),
    }
    for name, (content, message) in cases.items():
        bad = tmp_path / name
        bad.write_bytes(content)
        with pytest.raises(QuadspikeError, match=message):
            load_model(bad)
    save_file({"x": torch.zeros(1)}, tmp_path / "foreign")
    with pytest.raises(QuadspikeError, match="no quadspike configuration"):
        load_model(tmp_path / "foreign")
    with pytest.raises(QuadspikeError, match="cannot read"):
        load_model(tmp_path / "missing")
    with pytest.raises(QuadspikeError, match=r"a folder: give a file in it"):
        load_model(tmp_path)
    with pytest.raises(QuadspikeError, match="do not fit"):
        load_model(path, num_classes=3)
    with pytest.raises(QuadspikeError, match="option of a model"):
        load_model(path, classes=3)


def test_one_changed_bit_is_refused(tmp_path):
    whole = save_model(make("cnn")[0], tmp_path / "model.safetensors").read_bytes()
    for place in random.Random(0).sample(range(len(whole)), 40):
        content = bytearray(whole)
        content[place] ^= 1 << place % 8
        (tmp_path / "bad").write_bytes(content)
        with pytest.raises(QuadspikeError):
            load_model(tmp_path / "bad")


def test_a_checksum_is_also_of_names_types_and_shapes():
    tensors = {"a": torch.zeros(4), "b": torch.ones(4)}
    others = [
        {"a": tensors["b"], "b": tensors["a"]},
        {"a": tensors["a"], "c": tensors["b"]},
        {"a": tensors["a"], "b": torch.ones(2, 2)},
        {"a": torch.zeros(4, dtype=torch.int32), "b": tensors["b"]},
    ]
    known = [checksum("", each) for each in (tensors, *others)]
    assert len(set(known)) == len(known)
    assert checksum("", dict(reversed(tensors.items()))) == known[0]


def resave(path, change):
    """The file at `path` without its checksum, as before there was one, and changed."""
    content = json.loads(safe_open(path, "pt").metadata()["quadspike"])
    del content["crc32"]
    change(content)
    save_file(load_file(path), path, {"quadspike": json.dumps(content)})
    return path


def test_a_file_without_a_checksum_is_read(tmp_path):
    model, x = make("cnn")
    path = resave(save_model(model, tmp_path / "m"), lambda content: None)
    assert torch.equal(load_model(path)(x), model(x))


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content["config"].update(of_later=1),
        lambda content: content["config"].pop("name"),
        lambda content: content.update(config=[]),
    ],
)
def test_a_configuration_of_another_version_is_refused(tmp_path, change):
    path = resave(save_model(make("cnn")[0], tmp_path / "m"), change)
    with pytest.raises(QuadspikeError, match="use the version that wrote it"):
        load_model(path)


# -- bad input -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "resnet91"}, "did you mean 'resnet19'"),
        ({"name": "cnn", "neuron": "lef"}, "did you mean 'lif'"),
        ({"name": "cnn", "norm": "tdn"}, "did you mean 'tdbn'"),
        ({"name": "cnn", "num_classes": 0}, "num_classes"),
        ({"name": "cnn", "seed": 1.5}, "seed must be a whole number"),
        ({"name": "cnn", "seed": 2**64}, "seed must be a whole number"),
        ({"name": "cnn", "in_channels": 1.5}, "in_channels"),
        ({"name": "resnet8", "residual": "sum"}, "residual form"),
        ({"name": "resnet8", "shortcut_neuron": False}, "shortcuts need a neuron"),
        ({"name": "resnet8", "identity_norm": True}, "real numbers"),
        ({"name": "cnn", "identity_norm": True}, "cnn has no identity_norm"),
        (
            {"name": "resnet8", "residual": "sum-then-fire", "identity_norm": True, "norm": None},
            "identity_norm=True is for a normalisation",
        ),
        ({"name": "cnn", "eta": 0.0}, "eta must be a number > 0, got 0.0"),
        ({"name": "cnn", "eta": 1.0, "norm": "bn"}, "eta=1.0 is tdBN's"),
        ({"name": "cnn", "initial_gain": math.inf}, "initial_gain must be a number > 0"),
        ({"name": "cnn", "initial_gain": 2.0, "norm": None}, "initial_gain=2.0 is for"),
        ({"name": "vggsnn", "image_size": 8}, "image_size"),
        ({"name": "resnet34", "stem_pool": "min"}, "stem pooling"),
        ({"name": "cnn", "timesteps": 0}, "timesteps"),
        ({"name": "cnn", "dropout": 0.5}, "cnn has no dropout"),
        ({"name": "cnn", "residual": "sum-then-fire"}, "cnn has no residual"),
        ({"name": "resnet19", "stem_pool": "avg"}, "it is for resnet34"),
        ({"name": "resnet19", "stem_width": 0}, "stem_width"),
        ({"name": "mlp", "image_size": -3}, "image_size"),
    ],
)
def test_bad_requests_are_refused(options, message):
    with pytest.raises(QuadspikeError, match=message):
        create_model(**options)


def test_a_model_can_be_made_without_memory():
    with torch.device("meta"):
        model = create_model("resnet19")
    assert all(parameter.is_meta for parameter in model.parameters())
