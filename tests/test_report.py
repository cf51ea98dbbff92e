"""The page is whole, safe, self-contained, and the same for the same runs."""

from __future__ import annotations

import functools
import json
import math
import re
from pathlib import Path

import pytest
import tyro

from quadspike import QuadspikeError
from quadspike.cli.report import report
from quadspike.report import dynamics, read_run, write_report
from quadspike.report.dynamics import _figures as draw_neuron
from quadspike.report.markup import Html
from quadspike.written import duration, millijoule, percent, plain

from .page import Page
from .run_folders import RESNET19, change_record, make_run

SECTIONS = {
    "curves",
    "optimisation",
    "firing",
    "energy",
    "membranes",
    "neuron",
    "layers",
    "recipe",
    "environment",
}


@functools.cache
def _drawn_once(text: str, prefix: str) -> list[tuple[str, str, Html]]:
    return draw_neuron(json.loads(text), prefix)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The figures of a neuron take a second: draw the same ones once for all tests."""
    monkeypatch.setattr(
        dynamics, "_figures", lambda config, prefix: _drawn_once(json.dumps(config), prefix)
    )


def page_of(tmp_path: Path, *runs: Path) -> tuple[str, Page]:
    text = write_report(runs, tmp_path / "report.html").read_text(encoding="utf-8")
    return text, Page(text)


# -- the page ----------------------------------------------------------------------------


def test_numbers_are_written_for_people() -> None:
    assert percent(math.nan) == duration(math.inf) == millijoule(math.nan) == plain(None) == "—"
    assert duration(4.25) == "4.2\u00a0s"
    assert duration(59.97) == "1\u00a0min 00\u00a0s"
    assert duration(11_100) == "3\u00a0h 05\u00a0min"
    assert millijoule(0.00042947) == "0.429\u00a0µJ"
    assert percent(0.97815, 2) == "97.81\u00a0%"


def test_one_run_shows_every_section(tmp_path: Path) -> None:
    text, page = page_of(tmp_path, make_run(tmp_path / "run"))
    assert set(page.ids) >= SECTIONS
    assert "comparison" not in page.ids
    run = read_run(tmp_path / "run")
    assert f"Test accuracy {100 * run.epochs[-1].test_accuracy:.1f} % last epoch" in page.text()
    assert "chosen on validation" in page.text()
    for layer in ("conv1", "conv2", "conv3"):
        assert f">{layer}</b>" in text  # its membranes
    assert len(text) < 1_500_000


@pytest.mark.parametrize("finished", [True, False])
def test_epochs_without_an_evaluation(tmp_path: Path, finished: bool) -> None:
    """With a record and without: the figure is of epoch 10, and so are the layers' warnings."""
    folder = make_run(
        tmp_path / "run", finished=finished, done=11, evaluate_every=5, layers=("a.soma",)
    )
    run = read_run(folder)
    assert run.judged is not None
    assert run.judged.epoch == 10
    text, page = page_of(tmp_path, folder)
    assert f"Test accuracy {100 * run.judged.test_accuracy:.1f} % epoch 10" in page.text()
    assert "epoch 10, chosen on validation every 5 epochs" in page.text()
    assert "11 of 12 epochs" in page.text()
    assert set(page.ids) >= {"curves", "firing"}
    assert "nan" not in text.lower()


def test_epochs_with_an_evaluation_are_dots_where_others_have_none(tmp_path: Path) -> None:
    rare = make_run(tmp_path / "rare", evaluate_every=5, layers=("a.soma",))
    text, page = page_of(tmp_path, rare)
    dots = [a["d"].count("M") for _, a in page.tags if a.get("class") == "curve dot"]
    assert dots == [4] * 6  # test and validation, loss and accuracy; rate and window
    assert sum(a.get("class") == "curve faint" for _, a in page.tags) == 6
    assert text.count("Dots are the epochs with numbers.") == 4
    each, page = page_of(tmp_path, make_run(tmp_path / "each", layers=("a.soma",)))
    assert not [a for _, a in page.tags if a.get("class") in ("curve dot", "curve faint")]
    assert "Dots are" not in each


def test_several_runs_are_compared(tmp_path: Path) -> None:
    one = make_run(tmp_path / "a")
    two = make_run(tmp_path / "b", neuron="lif", lr=0.05, seed=1)
    _, page = page_of(tmp_path, one, two)
    words = page.text()
    assert set(page.ids) >= SECTIONS | {"comparison"}
    differing = words.split("What differs between the recipes.")[1].split("Learning curves")[0]
    assert re.findall(r"neuron qif lif|lr 0\.1 0\.05", differing) == [
        "neuron qif lif",
        "lr 0.1 0.05",
    ]
    assert "timesteps" not in differing
    assert "QIF (of a)" in words
    assert "LIF (of b)" in words


def test_the_same_neuron_is_drawn_once(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / name) for name in ("a", "b")]
    text, page = page_of(tmp_path, *runs)
    assert text.count("The recurrence</b>") == 1
    assert "QIF (of a, b)" in page.text()
    assert "The recipes do not differ." in page.text()


def test_a_run_is_called_as_its_folder_and_says_its_recipe_and_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_run(tmp_path / "memory", loss="tet")
    monkeypatch.chdir(folder)
    for given in (folder, Path(), folder / "record.json"):
        words = page_of(tmp_path, given)[1].text()
        assert "memory · quadspike report" in words
        assert "memory digits-qif: cnn on digits, QIF, TET, T = 4" in words


def test_runs_of_one_name_are_told_apart(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / name / "seed0") for name in ("left", "right")]
    _, page = page_of(tmp_path, *runs, runs[0])
    words = page.text()
    assert "seed0 (right)" in words
    assert "seed0 (left) (no. 1)" in words
    assert "seed0 (left) (no. 3)" in words


def test_a_run_under_way_says_so(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", finished=False, done=5)
    _, page = page_of(tmp_path, folder)
    assert "no record: it is under way, was killed, or was stopped" in page.text()
    assert "5 of 12 epochs are done" in page.text()
    assert set(page.ids) == {"curves", "optimisation", "firing", "recipe"}
    (folder / "metrics.jsonl").unlink()
    _, page = page_of(tmp_path, folder)
    assert "No epoch has finished yet." in page.text()
    assert page.ids == ["recipe"]


def test_a_dying_layer_of_a_run_under_way_is_named(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", finished=False, done=1)
    path = folder / "metrics.jsonl"
    line = json.loads(path.read_text())
    line["rates"]["conv2.soma"] = 0.0
    path.write_text(json.dumps(line) + "\n")
    assert "conv2.soma: dead: fires in 0.00% of steps" in page_of(tmp_path, folder)[1].text()


def test_warnings_and_a_stop_are_at_the_top(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", done=4, warnings=("conv1.soma: dead",))
    change_record(folder, notes=["went on after a kill"])
    words = page_of(tmp_path, folder)[1].text()
    assert "notes went on after a kill" in words
    note = words.split("Please note")[1].split("Learning curves")[0]
    assert "The run was stopped after 4 epochs." in note
    assert "conv1.soma: dead" in note


def test_only_finished_runs_win_a_column(tmp_path: Path) -> None:
    long, short = make_run(tmp_path / "a"), make_run(tmp_path / "b", epochs=20)
    killed = make_run(tmp_path / "c", done=2, finished=False)
    text, _ = page_of(tmp_path, long, short, killed)
    rows = re.findall(r'<tr><th scope="row">.*?</tr>', text)[:3]
    times = [re.findall(r'class="([^"]+)">([^<]+s)<', row) for row in rows]
    assert times == [
        [("number best", "16.8\u00a0s")],
        [("number", "28.0\u00a0s")],
        [("number", "2.8\u00a0s")],
    ]


def test_changed_fields_of_the_recipe_are_marked(tmp_path: Path) -> None:
    text, _ = page_of(tmp_path, make_run(tmp_path / "run", lr=0.3))
    assert re.search(r"<code>lr</code></th><td><mark>0\.3</mark>", text)
    assert re.search(r"<code>norm</code></th><td>tdbn</td>", text)


def test_numbers_that_are_none_do_not_break_it(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run")
    record = json.loads((folder / "record.json").read_text())
    for line in record["metrics"]:
        line |= {"train_loss": None, "test_loss": math.inf, "grad_norm": None}
    for layer in record["layers"]:
        layer |= {"rate": math.nan, "window": [None, None], "threshold": None}
        layer["histogram"]["counts"] = [0] * 120
    for row in record["energy"]:
        row |= {"energy_pj": math.nan, "exact_energy_pj": None}
    record["summary"] |= {"energy_mj": None, "firing_rate": None}
    change_record(folder, **record)
    text, _ = page_of(tmp_path, folder)
    drawn = re.findall(r' (?:x|y|d|points|width|height)="([^"]*)"', text)
    assert not [value for value in drawn if "nan" in value or "inf" in value]
    assert "—" in text


def test_a_loss_that_is_none_takes_no_accuracy_with_it(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run")
    metrics = json.loads((folder / "record.json").read_text())["metrics"]
    change_record(folder, metrics=[line | {"test_loss": math.inf} for line in metrics])
    text, _ = page_of(tmp_path, folder)
    assert "test ends" not in re.search(r"Loss over epochs: [^\"<]*", text)[0]
    assert "test ends" in re.search(r"Accuracy over epochs: [^\"<]*", text)[0]


def test_the_losses_say_what_they_are_where_training_minimised_another(tmp_path: Path) -> None:
    def caption(*runs: Path) -> str:
        return re.search(r"Loss</b>(.*?)</figcaption>", page_of(tmp_path, *runs)[0])[1]

    plain = make_run(tmp_path / "plain")
    last = make_run(tmp_path / "last", loss="lts")
    assert caption(plain) == caption(plain, last) == ""
    tet = make_run(tmp_path / "tet", loss="tet", label_smoothing=0.1)
    assert "Train is the loss as minimised: TET with label smoothing 0.1." in caption(tet)
    heads = make_run(tmp_path / "heads", aid="sml")
    assert "CE with the loss of the heads (sml)." in caption(heads)
    assert "TET with label smoothing 0.1 (tet); CE (" in caption(tet, plain)


def test_the_energies_of_the_layers_add_up_to_the_headline(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run")
    text, _ = page_of(tmp_path, folder)
    parts = re.findall(r"synapses ([\d.]+) µJ, neurons ([\d.]+) µJ", text)
    record = read_run(folder).record
    assert record is not None
    microjoule = sum(float(number) for pair in parts for number in pair)
    assert microjoule == pytest.approx(1e3 * record.summary.energy_mj, rel=0.01)


def test_a_network_that_could_not_be_billed_has_no_energy(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run")
    summary = json.loads((folder / "record.json").read_text())["summary"]
    kept = {k: v for k, v in summary.items() if not k.startswith(("energy", "firing"))}
    change_record(folder, energy=[], summary=kept)
    _, page = page_of(tmp_path, folder)
    assert "Energy — an inference" in page.text()
    assert "energy" not in page.ids


@pytest.mark.parametrize(
    ("neuron", "message"),
    [
        (None, None),
        ({"name": "izhikevich"}, "Not drawn: unknown neuron"),
        ({"name": "qif", "learned": 5}, "Not drawn: "),
        ({"name": "qif", "a": [0.25, 0.3]}, "a = by channel"),
    ],
)
def test_a_neuron_that_cannot_be_drawn(
    tmp_path: Path, neuron: dict[str, object] | None, message: str | None
) -> None:
    folder = make_run(tmp_path / "run")
    change_record(folder, neuron=neuron)
    _, page = page_of(tmp_path, folder)
    assert ("neuron" in page.ids) == (message is not None)
    assert message is None or message in page.text()


def test_a_neuron_that_only_derives_from_lif_is_not_drawn_as_one(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", neuron="lif")
    assert "Beside a QIF" in page_of(tmp_path, folder)[1].text()
    change_record(folder, neuron={"name": "im-lif"})
    assert "Beside a QIF" not in page_of(tmp_path, folder)[1].text()


def test_every_threshold_has_its_line(tmp_path: Path) -> None:
    def lines() -> int:
        _, page = page_of(tmp_path, folder)
        return sum(attributes.get("class") == "threshold" for _, attributes in page.tags)

    folder = make_run(tmp_path / "run")
    layers = json.loads((folder / "record.json").read_text())["layers"]
    assert lines() == len(layers)
    change_record(folder, layers=[{**layer, "edges": [-0.5, 0.5]} for layer in layers])
    assert lines() == 2 * len(layers)


def test_a_run_of_several_parts_says_what_each_was_made_with(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run")
    assert "unlike each other" not in page_of(tmp_path, folder)[1].words
    last = json.loads((folder / "record.json").read_text())["environment"]
    change_record(folder, earlier_environments=[{**last, "commit": "before", "device": "there"}])
    words = page_of(tmp_path, folder)[1].words
    assert "2 unlike each other" in words
    assert f"before; {last['commit']} " in words
    assert f"there; {last['device']} " in words
    assert f" {last['torch']} " in words


def test_a_run_says_what_its_time_went_into(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run")
    spent = {"steps": 61.0, "capture": 7.25, "data": 0.01}
    summary = json.loads((folder / "record.json").read_text())["summary"]
    change_record(folder, summary={**summary, "seconds_spent_on": spent})
    assert "steps 1\u00a0min 01\u00a0s, capture 7.2\u00a0s" in page_of(tmp_path, folder)[0]
    del summary["seconds_spent_on"]  # as in a record from before
    change_record(folder, summary=summary)
    assert "steps 1" not in page_of(tmp_path, folder)[0]


EVIL = '"><script>alert(1)</script><img src=x onerror=alert(2)>'


def test_names_are_words_never_markup(tmp_path: Path) -> None:
    folder = tmp_path / '"><img src=x onerror=alert(3)>'
    make_run(folder, name=f"run{EVIL}", layers=(f"conv{EVIL}", "b&b.soma"), warnings=(EVIL,))
    change_record(
        folder, environment={EVIL: EVIL}, weights={EVIL: EVIL}, neuron={"name": EVIL, EVIL: EVIL}
    )
    text, page = page_of(tmp_path, folder)
    names = {name for name, _ in page.tags}
    assert not names & {"script", "img", "iframe", "object", "link", "form"}
    assert not [key for _, attributes in page.tags for key in attributes if key.startswith("on")]
    assert f"run{EVIL}" in page.words
    assert "b&amp;b" in text


def test_a_lone_surrogate_in_a_name_does_not_break_it(tmp_path: Path) -> None:
    _, page = page_of(tmp_path, make_run(tmp_path / "run", name="odd \ud800 name"))
    assert "odd ? name" in page.text()


@pytest.fixture(scope="module")
def resnets(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    base = tmp_path_factory.mktemp("runs")
    shared = {"dataset": "cifar10", "model": "resnet19", "epochs": 100, "validation": 0}
    return make_run(base / "qif", **shared), make_run(base / "lif", neuron="lif", **shared)


def test_the_page_is_self_contained_and_light(tmp_path: Path, resnets: tuple[Path, Path]) -> None:
    text, page = page_of(tmp_path, *resnets)
    assert not re.findall(r"https?:|//[a-z]|@import|url\((?!#)", text)
    for name, attributes in page.tags:
        assert "src" not in attributes
        assert attributes.get("href", "#").startswith("#"), (name, attributes)
    assert len(page.ids) == len(set(page.ids))
    wanted = re.findall(r'(?:url\(|href=")#([^)"]+)', text)
    assert set(wanted) <= set(page.ids)
    assert "default-src 'none'" in text.replace("&#x27;", "'")
    assert len(text) < 2_000_000


def test_every_figure_has_words(tmp_path: Path, resnets: tuple[Path, Path]) -> None:
    text, page = page_of(tmp_path, *resnets)
    drawings = [a for name, a in page.tags if name == "svg"]
    assert all(a.get("aria-label") or a.get("aria-hidden") == "true" for a in drawings)
    figures = [name for name, _ in page.tags if name in ("figure", "figcaption")]
    assert figures[::2] == ["figure"] * (len(figures) // 2)
    assert figures[1::2] == ["figcaption"] * (len(figures) // 2)
    for layer in RESNET19:
        assert text.count(f"Membranes of {layer}:") == 2


def test_the_same_run_gives_the_same_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dynamics, "_figures", draw_neuron)
    run = make_run(tmp_path / "run")
    pages = [write_report([run], tmp_path / name).read_bytes() for name in ("a", "b")]
    assert pages[0] == pages[1]


def test_a_single_epoch_and_small_numbers_are_drawn(tmp_path: Path) -> None:
    text, _ = page_of(tmp_path, make_run(tmp_path / "run", epochs=1, lr=0.00025))
    assert "<polyline" not in text
    assert len(re.findall(r'class="curve dot" d="M[\d.]+,[\d.]+h0"', text)) > 6
    labels = re.findall(r'<text x="(\d+\.?\d*)" y="[^"]+" text-anchor="end">([^<]+)<', text)
    assert all(float(x) >= 5.5 * len(label) for x, label in labels)


# -- writing -----------------------------------------------------------------------------


def test_the_command_says_where_the_page_lies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, out = make_run(tmp_path / "run"), tmp_path / "deep" / "page.html"
    tyro.cli(report, args=[str(folder), "-o", str(out)])
    assert capsys.readouterr().out == f"{out}\n"
    assert [path.name for path in out.parent.iterdir()] == ["page.html"]


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run")
    (tmp_path / "taken").mkdir()
    (tmp_path / "file").touch()
    for place in ("taken", "file/page.html"):
        with pytest.raises(QuadspikeError, match=f"cannot .*{place.partition('/')[0]}"):
            write_report([folder], tmp_path / place)
    with pytest.raises(QuadspikeError, match="at least one run"):
        write_report([], tmp_path / "page.html")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "run", "taken"]
