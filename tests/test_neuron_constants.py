"""A neuron's constants as part of a recipe, of commands, and of what names and groups runs."""

from __future__ import annotations

import json
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quadspike import QIF, QuadspikeError, create_model
from quadspike.cli.asking import ask
from quadspike.cli.train import USUAL
from quadspike.comparison.jobs import plan
from quadspike.comparison.run import choose_methods
from quadspike.data.geometry import GEOMETRIES
from quadspike.models import load_model
from quadspike.neurons import NEURONS, create_neuron, voltage_statistics
from quadspike.recipes import create_recipe, paper_figure
from quadspike.records.command import train_command
from quadspike.records.series import against, curves
from quadspike.records.words import shown
from quadspike.sweeps import SweepFolder
from quadspike.training.network import make_network
from quadspike.training.queue import check_folders
from quadspike.training.recipe import Recipe
from tests.conftest import run_cli

TINY = Recipe("digits-mlp", "digits", "mlp", timesteps=2, epochs=1, batch_size=256, lr=0.05)


def rebuilt(recipe):
    return Recipe.from_dict(json.loads(json.dumps(recipe.as_dict())))


@st.composite
def constants(draw):
    """A neuron and allowed numbers for some of its constants."""
    share = st.floats(0, 1)
    number = st.floats(-100, 100)
    positive = st.floats(1e-3, 100)
    kinds = {
        "lif": {"beta": share, "u_th": positive, "u_reset": number},
        "plif": {"w": number, "u_th": positive},
        "ternary-trained": {"beta": share, "u_th": positive, "alpha": number},
        "glif": {"u_th_logit": st.floats(-20, 20), "leak_logit": number},
    }
    name = draw(st.sampled_from(["qif", "qif-learned", *kinds]))
    if name in kinds:
        return name, draw(st.fixed_dictionaries({}, optional=kinds[name]))
    a, low, gap = draw(st.floats(1e-2, 5)), draw(st.floats(0, 2)), draw(st.floats(0, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        top = QIF(a, low, low + gap, low + gap).critical
    # Not quite to the top: what is learned is rounded to float32.
    u_th = max(low + gap + 0.99 * draw(share) * (top - low - gap), 1e-3)
    return name, {"a": a, "u1": low, "u2": low + gap, "u_th": u_th, "u_reset": draw(number)}


@settings(deadline=None)
@given(constants())
def test_a_recipe_comes_back_from_json_with_its_constants(found):
    neuron, numbers = found
    recipe = TINY.but(neuron=neuron, neuron_constants=numbers)
    again = rebuilt(recipe)
    assert again == recipe
    assert hash(again) == hash(recipe)
    assert again.neuron_constants == numbers
    assert TINY.but(neuron=neuron, **{f"neuron.{k}": v for k, v in numbers.items()}) == recipe
    assert recipe.but(**dict.fromkeys(f"neuron.{k}" for k in numbers)) == TINY.but(neuron=neuron)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = create_neuron(recipe.neuron_config()).config()
    assert {name: made[name] for name in numbers} == pytest.approx(numbers, rel=1e-6)


def test_recipes_with_other_constants_are_not_equal_and_none_can_be_changed():
    recipe = TINY.but(neuron_constants={"u_th": 0.6, "a": 0.3})
    assert recipe == TINY.but(neuron_constants={"a": 0.3, "u_th": 0.6})
    assert len({recipe, TINY, TINY.but(neuron_constants={"a": 0.3})}) == 3
    assert TINY.differences(recipe) == {"neuron.a": (None, 0.3), "neuron.u_th": (None, 0.6)}
    with pytest.raises(TypeError):
        recipe.neuron_constants["a"] = 1.0
    given = {"a": 0.3}
    held = TINY.but(neuron_constants=given)
    given["a"] = 7
    assert held.neuron_constants == {"a": 0.3}


def test_a_recipe_written_before_there_were_constants_is_the_same():
    content = create_recipe("cifar10-resnet19").as_dict()
    del content["neuron_constants"]
    assert Recipe.from_dict(content) == create_recipe("cifar10-resnet19")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"neuron.b": 0.3}, r"unknown constant of neuron 'qif' 'b'.*a, u1, u2, u_c"),
        ({"neuron": "lif", "neuron.a": 0.3}, r"constant of neuron 'lif' 'a'.*beta, u_reset, u_th"),
        ({"neuron.a": "x"}, r"neuron\.a must be a finite number, got 'x'"),
        ({"neuron.a": float("nan")}, "finite number"),
        ({"neuron.a": True}, "finite number"),
        ({"neuron_constants": "a=0.3"}, "numbers by name"),
        ({"neuron.a": 0}, "QIF needs a > 0"),
        ({"neuron.u_th": 0.4}, "0.5 <= u_th <= 4.5"),
        ({"neuron.u_c": -1}, "u_r < u_c"),
        ({"neuron.u_c": 3, "neuron.u2": 0.5}, "give either"),
        ({"neuron.u1": -1, "neuron.u2": -0.5, "neuron.u_th": 0}, "tdBN needs u_th > 0"),
        (
            {"neuron.u1": -1, "neuron.u2": -0.5, "neuron.u_th": 0, "norm": "bn"}
            | {"window": "stationary"},
            "std > 0",
        ),
        ({"neuron": "lif", "neuron.beta": 2}, "0 <= beta <= 1"),
        (
            {"neuron": "qif-learned", "neuron.u_r": 0.4, "neuron.u_c": 4, "neuron.u_th": 0.7},
            "must be a real number",
        ),
    ],
)
def test_what_the_neuron_refuses_is_refused_with_the_recipe(fields, said):
    with pytest.raises(QuadspikeError, match=said):
        TINY.but(**fields)


def test_every_neuron_takes_its_own_numbers():
    for name, kind in NEURONS.items():
        numbers = {
            constant: number
            for constant, number in kind().config().items()
            if constant in kind.constant_names()
        }
        assert TINY.but(neuron=name, neuron_constants=numbers).neuron_constants == numbers


def test_rest_and_critical_potential_stand_for_the_roots():
    recipe = TINY.but(**{"neuron.a": 0.2, "neuron.u_r": -0.1, "neuron.u_c": 4.0})
    neuron = create_neuron(recipe.neuron_config())
    assert (neuron.resting, neuron.critical) == pytest.approx((-0.1, 4.0))
    assert TINY.but(**{"neuron.u_c": 4.5}).neuron_config() == {"name": "qif", "u1": 0.0, "u2": 0.5}
    wide = TINY.but(**{"neuron.u_r": 0.4, "neuron.u_c": 4.0, "neuron.u_th": 0.7})
    assert not create_neuron(wide.neuron_config()).has_real_roots
    assert create_model("mlp", neuron=wide.neuron_config()).somas()


@pytest.mark.parametrize("center", ["threshold", "mean"])
def test_the_window_and_the_norm_follow_the_constants(center):
    numbers = {"a": 0.4, "u1": 0.1, "u2": 0.6, "u_th": 0.8}
    recipe = TINY.but(neuron_constants=numbers, window=center)
    mean, std = voltage_statistics(**numbers)
    for soma in make_network(recipe, GEOMETRIES["digits"]).somas().values():
        low, high = soma.neuron.surrogate.window(soma.neuron)
        middle = 0.8 if center == "threshold" else mean
        assert (low, high) == pytest.approx((middle - std, middle + std))
        assert soma.norm.u_th == 0.8


def test_the_paper_s_figure_is_not_that_of_another_neuron():
    recipe = create_recipe("cifar10-resnet19", **{"neuron.a": 0.3})
    assert paper_figure(create_recipe("cifar10-resnet19"))
    assert paper_figure(recipe) is None
    assert recipe.neuron_words() == "QIF (a=0.3)"


@pytest.mark.parametrize("neuron", NEURONS)
def test_a_neuron_has_one_name_alone_and_in_a_table(neuron):
    recipe = create_recipe("digits-mlp", neuron=neuron)
    assert recipe.neuron_words() == shown("neuron", neuron)


def test_the_command_of_a_run_is_read_back_as_its_recipe():
    recipe = create_recipe("digits-mlp", **{"neuron.a": 0.1 + 0.2, "neuron.u_th": 0.6, "lr": 0.5})
    for spelled_out in ((), recipe.as_dict()):
        words = train_command(recipe, spelled_out=spelled_out).split()
        asked = ask("train", words[2:], USUAL, "", "")
        assert asked is not None
        assert asked.recipe == recipe


def test_in_a_comparison_constants_hold_where_the_neuron_has_them(tmp_path):
    base = create_recipe("digits-cnn-short", **{"neuron.a": 0.3, "neuron.u_th": 0.6})
    qif, lif = plan(base, choose_methods(("qif", "stbp-tdbn")), 1, tmp_path)
    assert qif.recipe.neuron_constants == {"a": 0.3, "u_th": 0.6}
    assert lif.recipe.neuron_constants == {"u_th": 0.6}
    check_folders([qif, lif])


def test_another_neuron_leaves_behind_what_it_does_not_have():
    strong = create_recipe("cifar10-resnet19-strong")
    assert strong.neuron_constants == {"u2": -2}
    assert strong.but(neuron="lif") == create_recipe("cifar10-resnet19-strong", neuron="lif")
    assert strong.but(neuron="qif").neuron_constants == {"u2": -2}
    with pytest.raises(QuadspikeError, match="constant of neuron 'lif' 'u2'"):
        strong.but(neuron="lif", neuron_constants={"u2": -2})
    with pytest.raises(QuadspikeError, match="neuron 'lf'; did you mean 'lif'"):
        strong.but(neuron="lf")


def test_a_sweep_over_constants_end_to_end(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    out = tmp_path / "s"
    quick = ("sweep", "digits-mlp", "--epochs", "1", "--batch-size", "256", "--device", "cpu")
    over = ("--neuron-constants", "u-th=0.6", "--over", "neuron.a=0.3,0.2", "timesteps=2")
    also = ("--also", "neuron=lif,neuron.beta=0.5", "--seeds", "2", "--out", str(out))
    assert run_cli(*quick, *over, *also) == 0
    table = capsys.readouterr().out
    assert "with u_th 0.6" in table
    headings, _, *rows = [line for line in table.splitlines() if line.startswith("| ")]
    assert headings.startswith("| T | neuron | a | beta | test, % |")
    starts = [row.split(" | ")[:4] for row in rows]
    assert starts == [
        ["| 2", "QIF", "0.2", "—"],
        ["| 2", "QIF", "0.3", "—"],
        ["| 4", "LIF", "—", "0.5"],
    ]
    assert all(row.endswith(" 2 |") for row in rows)  # seeds together, settings apart
    records = [state.record for state in SweepFolder(out).states() if state.record]
    assert [series.label for series in curves(records).series] == [
        "T = 2, QIF, a = 0.2",
        "T = 2, QIF, a = 0.3",
        "T = 4, LIF, beta = 0.5",
    ]
    plot = against([record for record in records if record.recipe.neuron == "qif"], "neuron.a")
    assert (plot.x, plot.along) == ("a", "numbers")
    assert [list(series.at()) for series in plot.series] == [[0.2, 0.3]]
    folder = out / "timesteps-2_neuron.a-0.3-seed1"
    neuron = load_model(folder / "last.safetensors").somas()["hidden1.soma"].neuron
    assert (neuron.a, neuron.u_th) == (0.3, 0.6)
    assert run_cli("evaluate", str(folder)) == 0
    report = tmp_path / "report.html"
    assert run_cli("report", *map(str, (folder, out / "neuron-lif_neuron.beta-0.5-seed0")),
                   "-o", str(report)) == 0  # fmt: skip
    assert "QIF (a=0.3, u_th=0.6)" in report.read_text()
    assert "<code>neuron.beta</code>" in report.read_text()
    capsys.readouterr()
    wrong = ("--over", "neuron=qif,lif", "neuron.a=0.3", "--out", str(tmp_path / "t"))
    assert run_cli(*quick, *wrong) == 2
    assert "neuron-lif_neuron.a-0.3 is refused" in capsys.readouterr().err
    assert not (tmp_path / "t").exists()


def test_a_run_s_folder_is_not_taken_up_with_other_constants(tmp_path, capsys):
    quick = ("train", "digits-mlp", "--epochs", "1", "--batch-size", "512", "--device", "cpu")
    out = ("--out", str(tmp_path / "r"))
    assert run_cli(*quick, "--neuron-constants", "a=0.3", *out) == 0
    assert "mlp with QIF (a=0.3)" in capsys.readouterr().out
    assert run_cli(*quick, "--neuron-constants", "a=0.2", *out, "--resume") == 2
    assert "neuron.a 0.3 -> 0.2" in capsys.readouterr().err
