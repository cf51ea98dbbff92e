"""The table of a comparison: its rows, the paper's cells beside them, its forms, its picture."""

from __future__ import annotations

import csv
import io
import json

import pytest

from quadspike.comparison import Comparison, Outcome, accuracy_against_energy, judge
from quadspike.comparison.grid import grid
from quadspike.comparison.rows import summarise
from quadspike.comparison.tables import comma_separated, escape, latex, markdown
from quadspike.methods import METHODS
from quadspike.recipes import create_recipe
from quadspike.training.record import made_on

MADE_ON = {
    "device": "a test",
    "torch": "2",
    "quadspike": "0",
    "commit": "c" * 40,
    "clean": True,
    "source": "5" * 64,
}


def outcome(method, seed=0, accuracy=0.9, **values):
    usual = {"step_ms": 9.5, "firing_rate": 0.2, "energy_mj": 0.6, "parameters": 1234}
    return Outcome(method, seed, accuracy=accuracy, **{**usual, "seconds": 1.0, **values})


def made(recipe, outcomes, seeds=1):
    methods = [METHODS[key] for key in dict.fromkeys(o.method for o in outcomes)]
    rows = tuple(summarise(method, outcomes, recipe) for method in methods)
    return Comparison(recipe, seeds, rows, tuple(outcomes), MADE_ON)


def test_the_paper_s_own_setting_is_like_for_like():
    recipe = create_recipe("cifar10-resnet19", timesteps=4)
    assert judge(METHODS["qif"], recipe).verdict == "yes"
    assert judge(METHODS["qif"], recipe).figure.accuracy == 96.49
    assert judge(METHODS["qif-tet"], recipe.but(timesteps=2)).figure.accuracy == 96.70
    for name, printed in (("cifar10-dvs-vggsnn", 83.00), ("cifar10-dvs-resnet19", 80.70)):
        cell = judge(METHODS["qif"], create_recipe(name))
        assert (cell.verdict, cell.figure.accuracy) == ("yes", printed)
    glif = judge(METHODS["glif"], recipe)
    assert (glif.verdict, glif.reasons) == ("partly", (METHODS["glif"].differs,))


@pytest.mark.parametrize(
    ("key", "recipe", "reason"),
    [
        ("plif", "cifar10-resnet19", "six convolutions"),
        ("stbp-tdbn", "cifar10-resnet19", "printed at T = 6, these runs are at 2"),
        ("qif", "cifar10-resnet19-short", "epochs 30 for 400"),
        ("qif", "cifar10-resnet8-short", "printed for ResNet-19, these runs are of resnet8"),
        ("qif", "digits-cnn", "printed for CIFAR-10, these runs are on digits"),
        ("imp-lts", "imagenet-resnet34", "SEW-ResNet-34"),
        ("tebn", "cifar10-dvs-vggsnn", "easier split"),
    ],
)
def test_a_cell_of_something_else_says_why(key, recipe, reason):
    cell = judge(METHODS[key], create_recipe(recipe))
    assert cell.verdict == "no"
    assert any(reason in text for text in cell.reasons)


@pytest.mark.parametrize(("key", "timesteps"), [("shortcuts", 2), ("im-lif", 3)])
def test_a_reconstruction_is_never_like_for_like(key, timesteps):
    cell = judge(METHODS[key], create_recipe("cifar10-resnet19", timesteps=timesteps))
    assert (cell.verdict, cell.reasons) == ("no", (METHODS[key].differs,))


def test_what_the_tables_do_not_have_has_no_cell():
    assert judge(METHODS["qif-learned"], create_recipe("cifar10-resnet19")) is None


@pytest.fixture
def small():
    """Three methods, two seeds: both good, one failed, all failed."""
    recipe = create_recipe("cifar10-resnet19")
    return made(
        recipe,
        [
            outcome("qif", 0, 0.9640, memory_gib=1.5),
            outcome("qif", 1, 0.9660, memory_gib=1.7, step_ms=10.5),
            outcome("ternary", 0, 0.95, memory_gib=2.0, energy_flags=("integer",)),
            Outcome("ternary", 1, failure="lost | 5 % of_it"),
            Outcome("qif-learned", 0, failure="refused"),
            Outcome("qif-learned", 1, failure="refused"),
        ],
        seeds=2,
    )


def test_markdown(small):
    lines = markdown(grid(small)).splitlines()
    assert lines[0] == (
        "## cifar10-resnet19: resnet19 on cifar10, T = 2, 400 epochs and 2 seeds a method"
    )
    assert lines[2:7] == [
        "| method | accuracy, % | ms a step | GiB | firing rate | energy, mJ | parameters | spikes "
        "| the paper, % | like for like |",
        "| --- |" + " ---: |" * 9,
        "| QIF | 96.50 ± 0.14 | 10.0 | 1.70 | 0.200 | 0.6000 | 1,234 | binary "
        "| 96.44 ± 0.07 (CIFAR-10, T = 2) | yes (a) |",
        "| Ternary spike | 95.00, 1 of 2 seeds (b) | 9.5 | 2.00 | 0.200 | 0.6000 (c, d) | 1,234 "
        "| -1, 0, 1 | 95.80 (CIFAR-10, T = 2) | partly (e) |",
        "| QIF, learned (ours) | failed (f) | — | — | — | — | — | binary | — | — |",
    ]
    notes = [line for line in lines if line.startswith("- (")]
    assert notes[1] == "- (b) lost | 5 % of_it"
    assert notes[2].startswith("- (c) spikes of both signs count")
    assert notes[3].startswith("- (d) its input holds sums of spikes")
    assert notes[5] == "- (f) refused"
    assert "± is the sample standard deviation over seeds." in "\n".join(lines)


def test_one_seed_and_no_gpu_are_said():
    found = made(create_recipe("digits-cnn"), [outcome("qif", energy_mj=5.37e-4)])
    text = markdown(grid(found))
    assert "One seed a method" in text
    assert "GiB" not in text
    assert "| energy, µJ |" in text
    assert "| 0.5370 |" in text


def test_a_flag_of_every_row_is_said_once(small):
    flagged = {"energy_flags": ("graded",)}
    found = made(small.recipe, [outcome("qif", **flagged), outcome("tet", **flagged)])
    shown = grid(found)
    assert any("At least one layer of every network: its input is not" in r for r in shown.remarks)
    assert not any("integer-valued" in text for _, text in shown.notes)


def test_latex(small):
    lines = latex(grid(small)).splitlines()
    assert lines[2] == (
        r"\caption{cifar10-resnet19: resnet19 on cifar10, T = 2, 400 epochs and 2 seeds a method.}"
    )
    assert r"\begin{tabular}{lrrrrrrrrr}" in lines
    row = (
        r"QIF & 96.50 $\pm$ 0.14 & 10.0 & 1.70 & 0.200 & 0.6000 & 1,234 & binary & "
        r"96.44 $\pm$ 0.07 (CIFAR-10, T = 2) & yes (a) \\"
    )
    assert row in lines
    assert r"(b) lost \textbar{} 5 \% of\_it." in lines[-2]
    text = "\n".join(lines)
    assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")


def test_escaping():
    assert escape("a_b {50 %} \\x ~^ <#&$> µJ") == (
        r"a\_b \{50 \%\} \textbackslash{}x \textasciitilde{}\textasciicircum{} "
        r"\textless{}\#\&\$\textgreater{} $\mu$J"
    )


def test_csv_holds_every_number_as_it_is(small):
    qif, ternary, learned = csv.DictReader(io.StringIO(comma_separated(small)))
    assert float(qif["accuracy_percent"]) == pytest.approx(96.5)
    assert float(qif["accuracy_spread"]) == pytest.approx(0.2 / 2**0.5)
    assert (qif["paper_accuracy_percent"], qif["paper_spread"]) == ("96.44", "0.07")
    assert (qif["like_for_like"], ternary["like_for_like"]) == ("yes", "partly")
    assert (ternary["runs"], ternary["failures"]) == ("1", "lost | 5 % of_it")
    assert (learned["accuracy_percent"], learned["paper_dataset"]) == ("", "")
    assert (qif["neuron"], learned["neuron"]) == ("qif", "qif-learned")


def test_a_record_is_json(small):
    again = json.loads(json.dumps(small.as_dict()))
    assert again["rows"][1]["paper"]["verdict"] == "partly"
    assert again["outcomes"][0]["accuracy"] == 0.964


def test_labels_lie_inside_and_apart():
    crowd = [
        outcome(key, accuracy=0.96 + 0.0005 * (i % 5), energy_mj=0.6 + 0.004 * (i % 7))
        for i, key in enumerate(METHODS)
    ]
    figure = accuracy_against_energy(made(create_recipe("cifar10-resnet19"), crowd))
    ax = figure.axes[0]
    texts = [text for text in ax.texts if text.get_text()]
    assert {text.get_text() for text in texts} == {method.title for method in METHODS.values()}
    boxes = [Bounds.of(text) for text in texts]
    frame = ax.get_window_extent()
    for i, box in enumerate(boxes):
        assert box.x0 >= frame.x0
        assert box.x1 <= frame.x1
        for other in boxes[:i]:
            assert not box.overlaps(other)


class Bounds:
    """The extent of a text without the line to its point."""

    def __init__(self, x0, y0, x1, y1):
        self.x0, self.y0, self.x1, self.y1 = x0, y0, x1, y1

    @classmethod
    def of(cls, text):
        text.arrow_patch.set_visible(False)
        size = text.get_window_extent()
        return cls(size.x0, size.y0, size.x1, size.y1)

    def overlaps(self, other):
        across = min(self.x1, other.x1) - max(self.x0, other.x0)
        along = min(self.y1, other.y1) - max(self.y0, other.y0)
        return across > 1 and along > 1


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "quadspike 0 at cccccccccc"),
        ({"clean": False}, "quadspike 0 at cccccccccc with changes, source 5555555555"),
        ({"commit": None, "clean": None}, "quadspike 0, source 5555555555"),
    ],
)
def test_code_has_the_name_it_can_be_found_by(changes, said):
    assert made_on(MADE_ON | changes) == f"a test, torch 2, {said}"


def test_all_that_the_runs_were_made_on_is_named():
    recipe = create_recipe("digits-cnn")
    alone = grid(made(recipe, [Outcome("tet", 0, failure="no")])).remarks[-1]
    assert alone == "Made on a test, torch 2, quadspike 0 at cccccccccc."
    parts = [outcome("qif", device="A", made_on=("A of old", "A")), outcome("tet", made_on=("A",))]
    assert grid(made(recipe, parts)).remarks[-1] == "Made on A of old; and on A."
    parts.append(outcome("lif", device="B", made_on=("B",)))
    assert grid(made(recipe, parts)).remarks[-1] == (
        "Made on A of old; and on A; and on B; times and memory are of one device each."
    )


def test_energies_far_apart_get_a_logarithmic_axis():
    recipe = create_recipe("digits-cnn")
    for ratio, scale in ((2.0, "linear"), (50.0, "log")):
        found = made(recipe, [outcome("qif"), outcome("tet", energy_mj=0.6 * ratio)])
        assert accuracy_against_energy(found).axes[0].get_xscale() == scale


def test_nothing_to_show_is_an_empty_picture():
    found = made(create_recipe("digits-cnn"), [Outcome("tet", 0, failure="no")])
    assert not accuracy_against_energy(found).axes[0].texts


def test_a_point_lies_at_its_energy_and_accuracy_in_the_unit_named():
    found = made(create_recipe("digits-cnn"), [outcome("tet", accuracy=0.9, energy_mj=0.0003)])
    ax = accuracy_against_energy(found).axes[0]
    assert ax.get_xlabel() == "energy of one inference, µJ"
    (drawn,) = (line for line in ax.lines if line.get_label() == "loss")
    assert (drawn.get_xdata()[0], drawn.get_ydata()[0]) == pytest.approx((0.3, 90.0))
