"""The dynamics of the runs' neurons, drawn by matplotlib and made fit to stand in a page."""

from __future__ import annotations

import io
import json
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from matplotlib.figure import Figure

from quadspike.analysis.figures import cobweb, lif_against_qif, phase_portrait, recurrence
from quadspike.analysis.figures.saving import FORMATS
from quadspike.analysis.figures.style import styled
from quadspike.errors import QuadspikeError, QuadspikeWarning
from quadspike.neurons import LIF, QIF, create_neuron
from quadspike.report.labels import Shown, figure, scrolling
from quadspike.report.markup import Html, join, tag
from quadspike.written import capitals, plain

Plate = tuple[str, str, Callable[[], Figure]]
"""A title, what to see, and how it is drawn."""


def neurons(runs: Sequence[Shown]) -> Html | None:
    """The dynamics of each distinct neuron, once."""
    owners: dict[str, list[Shown]] = {}
    for shown in runs:
        config = shown.run.record.neuron if shown.run.record else None
        if config is not None:
            owners.setdefault(json.dumps(config), []).append(shown)
    parts: list[object] = []
    for i, (text, those) in enumerate(owners.items()):
        config = json.loads(text)
        whose = f" (of {', '.join(shown.label for shown in those)})" if len(runs) > 1 else ""
        name = capitals(str(config.get("name", "neuron")))
        parts += [tag("h3", f"{name}{whose}"), tag("p", _parameters(config), class_="soft")]
        try:
            plates = _figures(config, f"neuron{i}-")
        except QuadspikeError as error:
            parts.append(tag("p", f"Not drawn: {error}"))
            continue
        drawn = [
            figure(title, caption, scrolling(f"Figure: {title}", svg, "paper scroll"))
            for title, caption, svg in plates
        ]
        parts.append(tag("div", *drawn, class_="plates"))
    return join(parts) if parts else None


def _parameters(config: Mapping[str, Any]) -> str:
    """The neuron's numbers and its surrogate in one line."""
    numbers = [
        f"{name} = {'by channel' if isinstance(value, list) else plain(value)}"
        for name, value in config.items()
        if name not in ("name", "learned", "surrogate", "detach_reset")
    ]
    surrogate = config.get("surrogate")
    if isinstance(surrogate, dict):
        options = ", ".join(f"{k} = {plain(v)}" for k, v in surrogate.items() if k != "name")
        numbers.append(f"surrogate {surrogate.get('name')} ({options})")
    return ", ".join(numbers)


def _figures(config: Mapping[str, Any], prefix: str) -> list[tuple[str, str, Html]]:
    """Title, caption and drawing of each figure; raises if the neuron cannot be drawn."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", QuadspikeWarning)  # said when the run was made
            neuron = create_neuron(dict(config))
            plates = _plates(neuron)
            return [
                (title, caption, _inline(draw, f"{prefix}{i}-", title))
                for i, (title, caption, draw) in enumerate(plates)
            ]
    except (TypeError, RuntimeError) as error:
        raise QuadspikeError(f"no neuron is {dict(config)}: {error}") from None


def _plates(neuron: Any) -> list[Plate]:
    if isinstance(neuron, QIF):
        return [
            (
                "The recurrence",
                "The next membrane for every membrane, without input: where f is below the "
                "dashed identity the membrane falls, above it the membrane rises.",
                partial(recurrence, neuron),
            ),
            (
                "Orbits",
                "From a start up or down to f, across to the identity, and again: each step "
                "of the membrane as a cobweb.",
                partial(cobweb, neuron),
            ),
            (
                "Phase portrait",
                "Arrows from each membrane to the next.",
                partial(phase_portrait, neuron),
            ),
        ]
    if type(neuron) is LIF:  # the drawing knows no more than LIF's equation
        return [
            (
                "Beside a QIF",
                "The same input to this LIF and to a QIF with the paper's parameters.",
                partial(lif_against_qif, QIF(), neuron),
            )
        ]
    return []


@styled
def _inline(draw: Callable[[], Figure], prefix: str, title: str) -> Html:
    figure = draw()
    for artist in figure.findobj(lambda artist: bool(getattr(artist, "get_hatch", str)())):
        # A tile of hatching holds every stroke: half as dense is a quarter of the size.
        hatch = artist.get_hatch()  # type: ignore[attr-defined]
        artist.set_hatch(hatch[: len(hatch) // 2])  # type: ignore[attr-defined]
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata=FORMATS["svg"])
    return _embedded(file.getvalue(), prefix, title)


def _embedded(document: str, prefix: str, title: str) -> Html:
    """The drawing alone: without what names the file, coordinates to a hundredth, own ids."""
    head, inner = document[document.index("<svg ") :].split(">", 1)
    view = re.findall(r'viewBox="([^"]+)"', head)[0]
    inner = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", inner, flags=re.S)
    inner = re.sub(r' d="[^"]+"', lambda m: re.sub(r"(\.\d\d)\d+", r"\1", m[0]), inner)
    inner = re.sub(r"\s*\n\s*", " ", inner).replace("> <", "><").replace("xlink:href", "href")
    used = set(re.findall(r'(?:url\(|href=")#([^)"]+)', inner))
    inner = re.sub(r' id="([^"]+)"', lambda m: _own_id(m[1], prefix, used), inner)
    inner = re.sub(r'(url\(|href=")#', rf"\1#{prefix}", inner)
    # The style sheet of the file would reach the whole page; on the root it is inherited.
    style = "stroke-linejoin:round;stroke-linecap:butt"
    return Html(f'<svg viewBox="{view}" role="img" aria-label="{title}" style="{style}">{inner}')


def _own_id(name: str, prefix: str, used: set[str]) -> str:
    return f' id="{prefix}{name}"' if name in used else ""
