from __future__ import annotations

import dataclasses
import json
import math
from collections import ChainMap
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quadspike import LIF, QuadspikeError, composition, create_neuron, surrogates
from quadspike.data.geometry import GEOMETRIES, Geometry
from quadspike.neurons import NEURONS
from quadspike.recipes import RECIPES, create_recipe, paper_figure
from quadspike.recipes.registry import OPEN
from quadspike.surrogates import ArcTan, Center, Window
from quadspike.training import field_values as module
from quadspike.training.network import make_network
from quadspike.training.recipe import Recipe

PAPER = {name: entry for name, entry in RECIPES.items() if entry.figures}
SHAPES = {**GEOMETRIES, "digits-events": Geometry(2, 16, 10, static=False)}


# -- the settings ----------------------------------------------------------------------


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("neuron", ["qif", "lif"])
def test_every_recipe_names_itself_and_a_network_that_can_be_made(name, neuron):
    recipe = create_recipe(name, neuron=neuron, loss="tet", timesteps=3)
    assert (recipe.name, recipe.neuron, recipe.loss, recipe.timesteps) == (name, neuron, "tet", 3)
    assert create_recipe(name).loss == "ce"
    if recipe.model == "resnet34":
        return  # as resnet19, only larger
    make_network(recipe, SHAPES[recipe.dataset])


# The paper's table of hyperparameters, column by column.
TABLE = {
    "cifar10-resnet19": ("resnet19", "sgd", 0.1, 1e-4, 400, 128, 2, 0.0, 0.05),
    "cifar100-resnet19": ("resnet19", "sgd", 0.1, 1e-4, 400, 128, 2, 0.0, 0.05),
    "imagenet-resnet34": ("resnet34", "sgd", 0.15, 5e-5, 350, 512, 4, 0.0, 0.001),
    "cifar10-dvs-vggsnn": ("vggsnn", "adam", 1e-3, 5e-4, 100, 128, 10, 0.6, 0.001),
    "cifar10-dvs-resnet19": ("resnet19", "adam", 1e-3, 5e-4, 100, 128, 10, 0.6, 0.001),
}


@pytest.mark.parametrize("name", TABLE)
def test_the_paper_s_hyperparameters(name):
    r = create_recipe(name)
    assert TABLE[name] == (
        r.model,
        r.optimizer,
        r.lr,
        r.weight_decay,
        r.epochs,
        r.batch_size,
        r.timesteps,
        r.dropout,
        r.tet_lambda,
    )
    assert r.momentum == 0.9
    assert r.warmup_epochs == (5 if r.dataset == "imagenet" else 0)
    assert r.autoaugment == (r.dataset == "cifar100")
    assert r.cutout == (0 if r.dataset == "cifar10-dvs" else 16)
    assert r.precision == "bf16"
    assert set(TABLE) == set(PAPER)


def test_overrides_and_the_function_s_parameters():
    recipe = create_recipe(
        "cifar10-dvs-vggsnn", loss="tet", timesteps=4, epochs=3, split="tebn", tet_phi=0.5
    )
    assert (recipe.tet_lambda, recipe.timesteps, recipe.epochs) == (0.001, 4, 3)
    assert (recipe.split, recipe.tet_phi) == ("tebn", 0.5)
    assert create_recipe("cifar10-resnet19", loss="tet", tet_lambda=0.2).tet_lambda == 0.2


@pytest.mark.parametrize(
    ("name", "overrides", "message"),
    [
        ("cifar10-resnet18", {}, "unknown recipe .* did you mean 'cifar10-resnet19'"),
        ("cifar10-resnet19", {"epoch": 3}, "field of a recipe 'epoch'; did you mean 'epochs'"),
        ("cifar10-resnet19", {"loss": "tte"}, "loss 'tte'"),
        ("imagenet-resnet34", {"epochs": 5}, "warm-up of 5 epochs takes all of the 5"),
        ("imagenet-resnet34", {"image_transform": "usual"}, "no cutout, got 16; set cutout=0"),
    ],
)
def test_wrong_names_are_answered_with_the_nearest(name, overrides, message):
    with pytest.raises(QuadspikeError, match=message):
        create_recipe(name, **overrides)


# -- what the paper reports ------------------------------------------------------------


@pytest.mark.parametrize("name", RECIPES)
def test_figures_belong_to_the_paper_s_settings_alone(name):
    entry = RECIPES[name]
    for (timesteps, loss), figure in entry.figures.items():
        recipe = create_recipe(name, timesteps=timesteps, loss=loss)
        assert paper_figure(recipe) == figure
        free = recipe.but(name="mine", seed=3, backend="reference", precision="fp32")
        assert paper_figure(free) == figure
        for change in (
            {"neuron": "lif"},
            {"epochs": recipe.epochs + 1},
            {"validation": 100},
            {"timesteps": 3},
            {"lr": 0.2},
            {"surrogate": "triangle"},
        ):
            assert paper_figure(recipe.but(**change)) is None, change
    if not entry.figures:
        assert paper_figure(create_recipe(name)) is None


def test_the_figures_as_printed():
    assert paper_figure(create_recipe("cifar100-resnet19", timesteps=4, loss="tet")) == (
        80.62,
        0.24,
    )
    assert paper_figure(create_recipe("imagenet-resnet34")) == (70.52, None)
    assert paper_figure(create_recipe("imagenet-resnet34", timesteps=2)) is None
    assert paper_figure(create_recipe("cifar10-dvs-resnet19", split="tebn")) == (80.70, 0.10)
    assert {f.name for f in dataclasses.fields(Recipe)} >= OPEN


def test_the_listing(capsys, monkeypatch):
    from quadspike.cli.recipes import recipes

    monkeypatch.setenv("COLUMNS", "80")
    recipes()
    out = capsys.readouterr().out
    assert all(name in out for name in RECIPES)
    for shown in (
        "tet T 4  96.86 ± 0.13",
        "ce  T 4  70.52",
        "ce  T 10 83.00 ± 0.50",
        "last100",
    ):
        assert shown in out


# -- a recipe itself -------------------------------------------------------------------

positive = st.floats(1e-12, 1e12) | st.integers(1, 10**9)
share = st.floats(0, 1, exclude_max=True)
count = st.integers(1, 10**9)
FIELDS = {
    "name": st.text(min_size=1).filter(str.strip),
    "model": st.sampled_from(module._NAMES["model"]),
    "neuron": st.sampled_from(list(module._NAMES["neuron"])),
    "detach_reset": st.booleans(),
    "norm": st.sampled_from(list(module._NAMES["norm"])),
    "initial_gain": positive,
    "sync_norm": st.booleans(),
    "residual": st.sampled_from(module._NAMES["residual"]),
    "shortcut_neuron": st.booleans(),
    "identity_norm": st.booleans(),
    "stem_width": st.none() | count,
    "dropout": share,
    "ema": share,
    "loss": st.sampled_from(module._NAMES["loss"]),
    "tet_lambda": st.floats(0, 1) | st.integers(0, 1),
    "tet_phi": st.floats(-1e6, 1e6),
    "im_weight": st.just(0) | positive,
    "label_smoothing": share,
    "timesteps": count,
    "epochs": count,
    "batch_size": count,
    "optimizer": st.sampled_from(module._NAMES["optimizer"]),
    "lr": positive,
    "momentum": share,
    "weight_decay": st.just(0) | positive,
    "clip": st.none() | positive,
    "precision": st.sampled_from(module._NAMES["precision"]),
    "validation": st.integers(0, 10**9),
    "evaluate_every": st.integers(1, 10**9),
    "seed": st.integers(0, 2**63 - 1),
    "deterministic": st.booleans(),
    "backend": st.sampled_from(module._NAMES["backend"]),
}
WINDOWS = st.one_of(
    st.just({"window": None}),
    st.fixed_dictionaries(
        {
            "window": st.one_of(st.sampled_from(get_args(Center)), st.floats(-9, 9)),
            "window_scale": positive,
            "window_height": st.sampled_from(module._NAMES["window_height"]),
        }
    ),
    st.fixed_dictionaries({"norm": st.just("tdbn"), "eta": st.none() | positive}),
)
SURROGATES = st.fixed_dictionaries({"surrogate": st.sampled_from(list(module._NAMES["surrogate"]))})
AIDED = st.one_of(
    st.fixed_dictionaries({"aid": st.sampled_from([None, "sml", "imp"])}),
    st.fixed_dictionaries(
        {
            "aid": st.just("shortcuts"),
            "shortcut_form": st.sampled_from(module._NAMES["shortcut_form"]),
        }
    ),
)
DATA = st.one_of(
    st.fixed_dictionaries({"dataset": st.sampled_from(["digits", "digits-events", "own"])}),
    st.fixed_dictionaries(
        {
            "dataset": st.sampled_from(["cifar10", "cifar100"]),
            "cutout": st.integers(0, 100),
            "autoaugment": st.booleans(),
        }
    ),
    st.fixed_dictionaries(
        {"dataset": st.just("imagenet"), "image_transform": st.sampled_from(["paper", "usual"])}
    ),
    st.fixed_dictionaries(
        {"dataset": st.just("cifar10-dvs"), "split": st.sampled_from(module._NAMES["split"])}
    ),
)
CHOSEN = st.fixed_dictionaries({}, optional=FIELDS)


def go_together(values):
    asked = {field: values[field] for field in composition.Parts._fields if field in values}
    parts = composition.Parts(**{"neuron": "qif", **asked, "stages": values["model"] != "mlp"})
    return not composition.objection(parts)


VALUES = (
    st.tuples(WINDOWS | SURROGATES, CHOSEN, DATA, AIDED)
    .map(lambda parts: dict(ChainMap(*parts, {"name": "mine", "model": "cnn"})))
    .filter(go_together)
)


@settings(deadline=None)
@given(VALUES)
def test_a_recipe_survives_json(values):
    recipe = Recipe(**values)
    again = Recipe.from_dict(json.loads(json.dumps(recipe.as_dict(), allow_nan=False)))
    assert again == recipe
    assert recipe.differences(again) == {}
    assert hash(again) == hash(recipe)
    assert recipe.but(seed=5).differences(recipe).keys() <= {"seed"}


NEVER = st.sampled_from(
    [[], {}, (1,), "", "?", "QIF", b"sgd", object, math.nan, math.inf, -math.inf, -1, -0.5, 2.5]
)
HUGE = st.just(10**400)
FLAGS = [field.name for field in dataclasses.fields(Recipe) if field.type == "bool"]
NAMES = tuple(module._NAMES)
COUNTS = (
    "timesteps",
    "epochs",
    "batch_size",
    "accumulate",
    "train_timesteps",
    "small_size",
    "stem_width",
    "evaluate_every",
    "frame_size",
)
FROM_ZERO = ("full_epochs", "small_epochs", "graded_epochs", "cutout", "validation", "seed")
SHARES = ("dropout", "momentum", "label_smoothing", "ema")
BAD = {
    **{f: NEVER | st.sampled_from([0, 1, None, "yes"]) for f in FLAGS},
    "name": NEVER.filter(lambda v: not isinstance(v, str)) | st.sampled_from(["", "  ", None]),
    **{f: NEVER | st.sampled_from([0, True, 7]) for f in NAMES},
    **{f: NEVER | st.sampled_from([0, True, False, "3", 1.0]) for f in COUNTS},
    **{f: NEVER | st.sampled_from([True, "3", None, 1.0]) for f in FROM_ZERO},
    **{f: NEVER | HUGE | st.sampled_from([True, "0.5", None, 1, 1.0]) for f in SHARES},
    "neuron_constants": NEVER.filter(lambda v: v != {}) | st.sampled_from(["a=1", None, 0.3]),
    **{
        f: NEVER | HUGE | st.sampled_from([True, "0.5", None, 1.01]) for f in ("tet_lambda", "turn")
    },
    "window": NEVER.filter(lambda v: v not in (-1, -0.5, 2.5)) | HUGE | st.just(True),
    "tet_phi": NEVER.filter(lambda v: v not in (-1, -0.5, 2.5))
    | HUGE
    | st.sampled_from([True, 2e6]),
    "im_weight": NEVER.filter(lambda v: v != 2.5) | HUGE | st.sampled_from([True, "0", None]),
    "weight_decay": NEVER.filter(lambda v: v != 2.5) | HUGE | st.sampled_from([True, "0", None]),
    "warmup_epochs": NEVER.filter(lambda v: v != 2.5) | HUGE | st.sampled_from([True, "0", None]),
    **{
        f: NEVER.filter(lambda v: v != 2.5) | HUGE | st.sampled_from([True, "0", None, 0])
        for f in ("lr", "initial_gain", "window_scale")
    },
    **{
        f: NEVER.filter(lambda v: v != 2.5) | HUGE | st.sampled_from([True, "0", 0])
        for f in ("clip", "eta")
    },
}


def test_every_field_has_values_that_are_refused():
    assert BAD.keys() == {field.name for field in dataclasses.fields(Recipe)}


@settings(deadline=None)
@pytest.mark.parametrize("field", BAD)
@given(data=st.data())
def test_a_bad_value_is_refused_by_name(field, data):
    value = data.draw(BAD[field])
    fields = {"name": "mine", "dataset": "digits", "model": "cnn", field: value}
    with pytest.raises(QuadspikeError) as caught:
        Recipe(**fields)
    assert field in str(caught.value)
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"window": "mean", "surrogate": "triangle"}, ("window='mean'", "surrogate='triangle'")),
        ({"window_scale": 2.0}, ("window_scale=2.0", "say where", "threshold")),
        (
            {"window_height": "unit-area", "surrogate": "triangle"},
            ("window_height='unit-area'", "say where"),
        ),
        ({"eta": 1.0, "norm": "bn"}, ("eta=1.0", "norm='bn'")),
        ({"aid": "sml", "model": "mlp"}, ("aid='sml'", "stages")),
        ({"aid": "imp", "shortcut_form": "sum"}, ("shortcut_form='sum'", "aid='imp'")),
        ({"dataset": "cifar10-dvs"}, ("name one", "last100")),
        ({"split": "tebn"}, ("split", "digits")),
        ({"autoaugment": True}, ("autoaugment", "digits")),
        ({"frames_by": "time"}, ("frames_by='time'", "leave it out for digits")),
        ({"frame_values": "binary", "dataset": "own"}, ("frame_values", "leave it out for own")),
        (
            {"frame_size": 32, "dataset": "digits-events"},
            ("frame_size=32", "leave it out for digits-events"),
        ),
        ({"event_transform": "tet"}, ("event_transform='tet'", "cifar10-dvs")),
        (
            {"dataset": "cifar10-dvs", "split": "tebn", "frame_size": 129},
            ("frame_size=129", "128 pixels"),
        ),
        ({"cutout": 3}, ("cutout", "3", "digits")),
        ({"image_transform": "usual"}, ("image_transform", "digits")),
        ({"epochs": 3, "warmup_epochs": 3}, ("warm-up of 3", "3")),
        ({"batch_size": 10, "accumulate": 4}, ("10", "4 equal parts")),
        ({"nesterov": True, "optimizer": "adam"}, ("nesterov", "'adam'", "leave it out")),
        ({"nesterov": True, "momentum": 0.0}, ("nesterov", "momentum=0", "leave it out")),
        ({"seed": 2**63}, ("seed", str(2**63))),
        ({"ema": 1.0}, ("ema", "in [0, 1)", "1.0")),
        ({"tet_lambda": 1.5}, ("tet_lambda", "in [0, 1]", "1.5")),
    ],
)
def test_fields_that_do_not_go_together(fields, words):
    with pytest.raises(QuadspikeError) as caught:
        Recipe(**{"name": "mine", "dataset": "digits", "model": "cnn", **fields})
    assert all(word in str(caught.value) for word in words)


def test_the_window_s_shape_reaches_the_neuron():
    recipe = Recipe(
        "mine", "digits", "cnn", window="mean", window_scale=2, window_height="unit-area"
    )
    window = create_neuron(recipe.neuron_config()).surrogate
    assert window == Window("mean", 2, "unit-area")
    plain = Recipe("mine", "digits", "cnn", surrogate="window", window_scale=0.5)
    assert create_neuron(plain.neuron_config()).surrogate == Window("threshold", 0.5)


def test_numbers_out_of_an_array_are_those_they_stand_for():
    array = {"seed": np.int64(3), "lr": np.float32(0.5), "deterministic": np.bool_(True)}
    plain = {"seed": 3, "lr": 0.5, "deterministic": True}
    made, wanted = (create_recipe("digits-mlp", **fields) for fields in (array, plain))
    assert made.but(**{"neuron.a": np.int64(1)}) == wanted.but(**{"neuron.a": 1})
    assert json.dumps(made.as_dict()) == json.dumps(wanted.as_dict())


def test_what_is_not_a_recipe_is_not_read_as_one():
    with pytest.raises(QuadspikeError, match="needs 'dataset'"):
        Recipe.from_dict({"name": "mine", "model": "cnn"})
    with pytest.raises(QuadspikeError, match="'learning_rate'"):
        Recipe.from_dict({"name": "m", "dataset": "digits", "model": "cnn", "learning_rate": 1})


def test_parts_of_one_s_own_have_a_name_once_they_are_registered(monkeypatch):
    class Mine(LIF):
        name = "mine"

    class Slope(ArcTan):
        name = "slope"

    monkeypatch.setitem(NEURONS, "mine", Mine)
    monkeypatch.setitem(surrogates.SURROGATES, "slope", Slope)
    recipe = create_recipe("digits-mlp", neuron="mine", surrogate="slope")
    soma = make_network(recipe.but(**{"neuron.beta": 0.5}), SHAPES["digits"]).hidden1.soma
    assert type(soma.neuron) is Mine
    assert (soma.neuron.beta, soma.neuron.surrogate) == (0.5, Slope())
    with pytest.raises(QuadspikeError, match=r"unknown neuron 'mime'; did you mean 'mine'"):
        recipe.but(neuron="mime")
