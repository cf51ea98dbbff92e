"""The registry of methods against the paper's tables, and the page made from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from quadspike import QuadspikeError
from quadspike.methods import DATASETS, METHODS, NETWORKS, find_method
from quadspike.methods.page import flags, methods_page
from quadspike.models import list_models
from quadspike.recipes import RECIPES, create_recipe

# Table 1 as printed: row, steps on CIFAR-10/CIFAR-100/ImageNet, accuracies; x where it has none.
TABLE_1 = """
stbp-tdbn     6/6/6  93.16       71.12       63.72
tebn          4/4/4  94.71       76.41       68.28
tet           6/6/6  94.50       74.72       68.00
im-loss       2/2/6  93.85       70.18       67.43
local-zo-tet  2/2/x  95.03       76.36       x
sml           4/4/4  96.82       79.18       68.25
mpbn          2/2/4  96.47       79.51       64.71
shortcuts     2/2/4  95.19       77.56       67.90
imp-lts       x/x/4  x           x           68.90
plif          8/x/x  93.50       x           x
glif          4/4/4  94.85       77.05       67.52
glif          2/2/x  94.44       75.48       x
lsg           4/4/x  95.17       76.85       x
lsg           2/2/x  94.41       76.32       x
im-lif        3/3/x  95.29       77.21       x
ternary       2/2/4  95.80       80.20       70.74
qif           4/4/4  96.49+-0.09 80.15+-0.06 70.52
qif           2/2/x  96.44+-0.07 79.68+-0.09 x
qif-tet       4/4/4  96.86+-0.13 80.62+-0.24 70.38
qif-tet       2/2/x  96.70+-0.08 80.31+-0.27 x
"""
# Table 2 as printed: row, network, steps, accuracy, all on CIFAR10-DVS.
TABLE_2 = """
stbp-tdbn     ResNet-19  10  67.80
tebn          VGGSNN     10  84.90
tet           VGGSNN     10  77.40
im-loss       ResNet-19  10  72.60
local-zo-tet  VGGSNN     10  75.62
glif          ResNet-19  16  78.10
lsg           VGGSNN     10  77.90
ternary       ResNet-19  10  79.84
qif           VGGSNN     10  83.00+-0.50
qif           ResNet-19  10  80.70+-0.10
qif-tet       VGGSNN     10  81.57+-0.92
qif-tet       ResNet-19  10  75.10+-1.50
"""
# Cells that were not measured on what the tables say: section 18.7 of our notes on the methods.
UNLIKE = {
    ("plif", "cifar10"),
    ("glif", "cifar10-dvs"),
    ("imp-lts", "imagenet"),
    ("tet", "imagenet"),
    ("tebn", "imagenet"),
    ("tebn", "cifar10-dvs"),
    ("im-loss", "cifar100"),
    ("im-loss", "imagenet"),
    ("lsg", "cifar10-dvs"),
}


def printed():
    """Every cell of both tables: (method, data set, network, steps, accuracy, spread)."""
    cells = set()
    for line in TABLE_1.split("\n")[1:-1]:
        key, steps, *values = line.split()
        networks = ("ResNet-19", "ResNet-19", "ResNet-34")
        datasets = ("cifar10", "cifar100", "imagenet")
        for name, network, t, value in zip(
            datasets, networks, steps.split("/"), values, strict=True
        ):
            if value != "x":
                cells.add((key, name, network, int(t), *accuracy(value)))
    for line in TABLE_2.split("\n")[1:-1]:
        key, network, t, value = line.split()
        cells.add((key, "cifar10-dvs", network, int(t), *accuracy(value)))
    return cells


def accuracy(text):
    mean, _, spread = text.partition("+-")
    return float(mean), float(spread) if spread else None


def test_every_cell_of_both_tables_is_registered_and_no_other():
    registered = {
        (key, f.dataset, f.network, f.timesteps, f.accuracy, f.spread)
        for key, method in METHODS.items()
        for f in method.figures
    }
    assert registered == printed()


def test_the_cells_that_are_not_what_the_tables_say_are_marked():
    marked = {(key, f.dataset) for key, m in METHODS.items() for f in m.figures if f.unlike}
    assert marked == UNLIKE


def test_the_names_of_data_sets_and_networks_are_ours():
    assert set(NETWORKS.values()) <= set(list_models())
    assert set(DATASETS) <= {entry.make().dataset for entry in RECIPES.values()}


@pytest.mark.parametrize("key", METHODS)
def test_every_method_makes_a_recipe(key):
    base = create_recipe("digits-cnn-short", timesteps=3, seed=7)
    method = METHODS[key]
    made = method.applied_to(base)
    changed = base.differences(made).keys()
    assert changed <= {*method.overrides, "name"}
    assert (made.neuron, made.norm, made.loss) == (method.neuron, method.norm, method.loss)
    assert made.name == f"digits-cnn-short-{key}"


@pytest.mark.parametrize("key", METHODS)
def test_every_method_is_explained(key):
    method = METHODS[key]
    assert method.key == key
    for text in (method.title, method.line, method.equation):
        assert text.strip() == text != ""
    assert len(method.line) <= 90
    for text in (method.paragraph, method.differs):
        assert text.endswith(".")
    assert 2018 <= method.source.year <= 2025


def test_no_two_methods_are_the_same_run():
    seen = [str(method.overrides) for method in METHODS.values()]
    assert len(set(seen)) == len(seen)


def test_what_a_recipe_says_of_a_method_does_not_stay():
    base = create_recipe("digits-cnn-short", loss="tet", norm="bn", window="mean")
    made = METHODS["stbp-tdbn"].applied_to(base)
    assert (made.loss, made.norm, made.window, made.neuron) == ("ce", "tdbn", None, "lif")
    assert METHODS["qif"].applied_to(base).window is None


def test_only_reconstructions_and_our_own_are_marked_in_their_names():
    marked = {key for key, method in METHODS.items() if method.name != method.title}
    assert marked == {"qif-learned", "shortcuts", "im-lif"}


def test_a_misspelt_method_is_refused_with_the_nearest():
    with pytest.raises(QuadspikeError, match="did you mean 'tebn'"):
        find_method("tebnn")


def test_the_flags_make_the_method():
    assert flags(METHODS["plif"]) == "--neuron plif --detach-reset"
    assert flags(METHODS["imp-lts"]) == "--neuron lif --loss lts --aid imp"


def test_the_page_in_the_documentation_is_the_registry_s():
    page = Path(__file__).parents[1] / "docs" / "methods.md"
    written = page.read_text(encoding="utf-8")
    assert written == methods_page(), "run: python -m quadspike.methods docs/methods.md"
    for method in METHODS.values():
        assert method.paragraph in written
        assert method.equation in written
