"""Tags of HTML and SVG as functions; what is not markup is escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable

_EMPTY = frozenset({"circle", "col", "line", "meta", "path", "rect"})


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def tag(name: str, /, *children: object, **attributes: object) -> Html:
    """An element; `class_` is `class`, `aria_label` is `aria-label`, None leaves one out.

    >>> tag("p", "a < b", class_="note")
    '<p class="note">a &lt; b</p>'
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(_text(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _EMPTY and not children:
        return Html(f"<{name}{written}/>")
    return Html(f"<{name}{written}>{join(children)}</{name}>")


def join(children: Iterable[object]) -> Html:
    """One after the other; None is nothing."""
    return Html(
        "".join(
            child if isinstance(child, Html) else html.escape(_text(child))
            for child in children
            if child is not None
        )
    )


def _text(value: object) -> str:
    """A number as short as the eye needs: coordinates to a hundredth."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
