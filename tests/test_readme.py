from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

import quadspike
from quadspike.analysis.energy import compare_with_paper
from quadspike.neurons import NEURONS

ROOT = Path(__file__).parent.parent


def test_the_readme_s_python_runs_in_order(capsys):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(blocks) >= 2
    scope: dict[str, object] = {}
    for block in blocks:
        exec(block, scope)
    accuracy = float(re.search(r"tensor\((.*?)\)", capsys.readouterr().out).group(1))
    assert accuracy > 0.95


def test_the_data_page_s_python_runs():
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/data.md").read_text(), re.DOTALL)
    scope: dict[str, object] = {}
    exec(block, scope)
    assert scope["labels"].shape == (64,)


def test_the_python_page_s_snippets_run_in_order(tmp_path, monkeypatch):
    page = (ROOT / "docs/python.md").read_text()
    script = tmp_path / "page.py"
    script.write_text("\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL)))
    monkeypatch.chdir(tmp_path)
    try:
        scope = runpy.run_path(str(script))
    finally:
        NEURONS.pop("saturating", None)
    assert scope["score"].accuracy == scope["again"].test_accuracy > 0.5
    answers = scope["small"].predict(scope["small"](scope["images"])).argmax(1)
    assert (answers == scope["labels"]).double().mean() > scope["score"].accuracy - 0.1
    for network in (scope["model"], scope["own_network"]):
        assert {layer.backend for layer in network.explain()} == {"vectorised"}


def test_the_citation_names_the_version():
    assert f"\nversion: {quadspike.__version__}\n" in (ROOT / "CITATION.cff").read_text()


@pytest.mark.parametrize("page", sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]), ids=str)
def test_every_link_and_picture_of_a_page_is_there(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} points to {target}"


def test_the_energy_page_holds_the_table_that_the_command_prints():
    page = (ROOT / "docs" / "energy.md").read_text()
    formats = {"macs": ",.0f", "acs": ",.0f", "rate": ".3f", "overhead_mj": ".4f",
               "overhead_percent": ".2f"}  # fmt: skip
    for cell in compare_with_paper():
        if cell.quantity == "energy_mj":
            continue
        text = f"{cell.computed:{formats[cell.quantity]}}"
        shown = f"**{text}**" if cell.agrees is False else text
        line = next(
            line
            for line in page.splitlines()
            if line.startswith(f"| {cell.row.network} | ")
            and cell.row.dataset.replace("-10 DVS", "10-DVS") in line
            and f"| {cell.row.timesteps} |" in line
        )
        assert f"| {shown} |" in line, (cell.row, cell.quantity)
