"""The page in a real browser: nothing fails, nothing is fetched, nothing sticks out, it prints."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from quadspike.report import write_report

from .run_folders import make_run

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="needs chromium, chromium-browser or google-chrome; none is installed"
)

QUIET = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--host-resolver-rules=MAP * ~NOTFOUND",  # a browser has errands of its own
)


def browse(page: Path, *options: str) -> subprocess.CompletedProcess[str]:
    assert BROWSER is not None
    profile = f"--user-data-dir={page.parent / 'profile'}"
    command = [BROWSER, *QUIET, profile, *options, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("page")
    name = "long" * 30  # and nowhere to break it at
    one, two = make_run(base / name, name=name), make_run(base / "b", neuron="lif", seed=1)
    three = make_run(base / "under-way", finished=False, done=3)
    return write_report([one, two, three], base / "report.html")


def measured(page: Path, width: int, script: str) -> dict[str, float]:
    """What `script` returns in a copy of the page that allows it, in a frame of that width.

    A frame, because a window has a least width of its own.
    """
    text = page.read_text(encoding="utf-8")
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    send = f"onload=()=>parent.postMessage(JSON.stringify((()=>{{{script}}})()),'*')"
    copy, outer = page.with_name("copy.html"), page.with_name("outer.html")
    copy.write_text(text.replace("</body>", f"<script>{send}</script></body>"), encoding="utf-8")
    outer.write_text(
        "<title></title><script>onmessage=e=>{document.title=e.data}</script>"
        f'<iframe src="copy.html" style="width:{width}px;height:900px;border:0"></iframe>'
    )
    dom = browse(outer, "--window-size=1400,1000", "--virtual-time-budget=2000", "--dump-dom")
    found = re.search(r"<title>(\{.*?\})</title>", dom.stdout)
    assert found is not None
    result: dict[str, float] = json.loads(found[1])
    return result


def test_it_loads_without_a_complaint(page: Path) -> None:
    seen = browse(page, "--dump-dom")
    assert "CONSOLE" not in seen.stderr
    for section in ("comparison", "curves", "firing", "energy", "membranes", "neuron", "recipe"):
        assert f'id="{section}"' in seen.stdout


def test_what_is_smuggled_in_is_neither_run_nor_fetched(page: Path) -> None:
    evil = page.with_name("evil.html")
    tags = '<script>document.title="run"</script><img src="https://example.org/x.png"></body>'
    evil.write_text(page.read_text(encoding="utf-8").replace("</body>", tags), encoding="utf-8")
    seen = browse(evil, "--dump-dom")
    complaints = [line for line in seen.stderr.splitlines() if "CONSOLE" in line]
    assert any("inline script" in line for line in complaints)
    assert any("example.org" in line for line in complaints)
    assert "<title>run</title>" not in seen.stdout


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_sticks_out_and_nothing_is_fetched(page: Path, width: int) -> None:
    script = """
    const frame = document.documentElement, wide = frame.clientWidth;
    document.querySelectorAll("details").forEach(d => { d.open = true });
    const out = [...document.querySelectorAll("main *, header *")].filter(e =>
      (e.matches("caption") || !e.closest(".scroll > *, .paper > *, svg *")) &&
      e.getBoundingClientRect().right > wide + 1);
    return {width: wide, scroll: frame.scrollWidth, out: out.length,
            fetched: performance.getEntriesByType("resource").length,
            figures: document.querySelectorAll("figure").length};
    """
    found = measured(page, width, script)
    assert 0.9 * width < found["width"] <= width
    assert found["scroll"] <= found["width"]
    assert found["out"] == 0
    assert found["fetched"] == 0
    assert found["figures"] > 10


def test_what_is_too_wide_for_a_phone_scrolls_and_shows_that_it_does(page: Path) -> None:
    script = """
    const boxes = [...document.querySelectorAll("details[open] .scroll")];
    const wide = boxes.filter(box => box.scrollWidth > box.clientWidth);
    const drawn = [...document.querySelectorAll(".paper svg")];
    return {wide: wide.filter(box => box.tabIndex === 0).length,
            hints: wide.filter(box => /local.*scroll/.test(
              getComputedStyle(box).backgroundAttachment)).length,
            narrowest: Math.min(...drawn.map(svg => svg.getBoundingClientRect().width))};
    """
    found = measured(page, 390, script)
    assert found["wide"] == found["hints"] > 4
    assert found["narrowest"] >= 600  # its letters, of eight points on 490, have nine pixels


def test_the_star_has_room_of_its_own(page: Path) -> None:
    script = """
    const room = [...document.querySelectorAll("td.best")].map(cell => {
      const number = document.createRange(); number.selectNodeContents(cell);
      return number.getBoundingClientRect().left - cell.getBoundingClientRect().left;
    });
    return {stars: room.length, least: Math.min(...room)};
    """
    found = measured(page, 1200, script)
    assert found["stars"] > 0
    assert found["least"] > 8


def test_a_layer_s_line_of_one_epoch_is_a_dot_that_is_seen(page: Path, tmp_path: Path) -> None:
    one = write_report([make_run(tmp_path / "one", epochs=1)], tmp_path / "one.html")
    script = """
    const wide = [...document.querySelectorAll("#firing .curve")]
      .map(e => parseFloat(getComputedStyle(e).strokeWidth));
    return {lines: wide.length, narrowest: Math.min(...wide)};
    """
    found, longer = (measured(each, 1280, script) for each in (one, page))
    assert found["lines"] == 6
    assert found["narrowest"] >= 4 > longer["narrowest"]


def test_it_prints_with_every_section_open(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    opened, shut = (text.replace(a, b) for a, b in ((_SHUT, _OPEN), (_OPEN, _SHUT)))
    assert opened != shut
    assert _pages(page, opened) == _pages(page, shut) > 3


_OPEN, _SHUT = '<details open="">', "<details>"


def _pages(page: Path, text: str) -> int:
    copy, target = page.with_name("print.html"), page.with_name("print.pdf")
    copy.write_text(text, encoding="utf-8")
    browse(copy, f"--print-to-pdf={target}", "--no-pdf-header-footer")
    return len(re.findall(rb"/Type\s*/Page\b", target.read_bytes()))
