"""A recipe's fields and their values in words."""

from __future__ import annotations

from typing import Any

from quadspike.training.constants import PREFIX
from quadspike.written import capitals, plain

_HEADINGS = {"timesteps": "T", "train_timesteps": "T in training"}
_SPEAK_FOR_THEMSELVES = ("neuron", "loss", "device")
_NONES = {
    "aid": "none",
    "clip": "none",
    "init_from": "new weights",
    "small_size": "none",
    "split": "none",
    "train_timesteps": "all",
}
"""What None is called; the other Nones leave it to the neuron or the network."""


def heading(field: str) -> str:
    """A field as a person calls it.

    >>> heading("detach_reset"), heading("timesteps"), heading("neuron.u_th")
    ('detach reset', 'T', 'u_th')
    """
    if field.startswith(PREFIX):
        return field.removeprefix(PREFIX)
    return _HEADINGS.get(field, field.replace("_", " "))


def shown(field: str, value: Any) -> str:
    """A value as a person writes it.

    >>> shown("eta", None), shown("clip", None), shown("detach_reset", True), shown("lr", 0.1)
    ('own', 'none', 'yes', '0.1')
    >>> shown("neuron", "lif"), shown("neuron", "im-lif")
    ('LIF', 'IM-LIF')
    """
    if value is None:
        return _NONES.get(field, "own")
    if field in ("neuron", "loss"):
        return capitals(value)
    return plain(value)


def phrase(field: str, value: Any) -> str:
    """A field and its value in words.

    >>> phrase("detach_reset", False), phrase("window", "mean"), phrase("timesteps", 4)
    ('no detach reset', 'window mean', 'T = 4')
    """
    name = heading(field)
    if isinstance(value, bool):
        return name if value else f"no {name}"
    if field in _SPEAK_FOR_THEMSELVES:
        return shown(field, value)
    return f"{name}{' ' if isinstance(value, str | None) else ' = '}{shown(field, value)}"
