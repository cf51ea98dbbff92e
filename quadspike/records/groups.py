"""Groups of records: who is in them, in what their recipes differ, and the words for it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from quadspike.errors import QuadspikeError
from quadspike.neurons import create_neuron
from quadspike.records.runs import RunRecord, read_record
from quadspike.records.store import Store
from quadspike.training.recipe import Recipe

_NOT_A_SETTING = ("name", "seed")
"""Fields of a recipe in which the runs of one setting may differ."""
_HEADINGS = {"timesteps": "T", "train_timesteps": "T in training"}
_SPEAK_FOR_THEMSELVES = ("neuron", "loss", "device")
_NONES = {"aid": "none", "clip": "none", "split": "none", "train_timesteps": "all"}
"""What None is called; the other Nones leave it to the neuron or the network."""


def group_names(store: Store) -> list[str]:
    """Every group that has a run."""
    found = {name.rpartition("/")[0] for name in store.names("runs")}
    return sorted(found - {""})


def read_group(store: Store, group: str) -> list[RunRecord]:
    """The runs of a group, or with "" those in none."""
    names = [name for name in store.names("runs") if name.rpartition("/")[0] == group]
    return [read_record(name, store.read("runs", name)) for name in names]


def read_groups(store: Store, groups: Sequence[str]) -> list[RunRecord]:
    """The runs of several groups, each of which must have some; a run in two of them once."""
    known = group_names(store)
    listed = f"those that have are: {', '.join(known)}" if known else "no group has"
    if not groups:
        raise QuadspikeError(f"name a group that has runs on record; {listed}")
    for group in groups:
        if group not in known:
            raise QuadspikeError(f"the group {group!r} has no runs on record; {listed}")
    found: list[RunRecord] = []
    for record in (record for group in groups for record in read_group(store, group)):
        if all((record.recipe, record.metrics) != (run.recipe, run.metrics) for run in found):
            found.append(record)
    return found


def setting(record: RunRecord) -> dict[str, Any]:
    """What may differ between runs: the recipe without its name and seed, and the device."""
    recipe = record.recipe.as_dict().items()
    own = {field: value for field, value in recipe if field not in _NOT_A_SETTING}
    return {**own, "device": record.summary["device"]}


def differing(records: Sequence[RunRecord]) -> list[str]:
    """The fields in which not all of the runs are the same, in the recipe's order."""
    first, *others = map(setting, records)
    return [field for field in first if any(other[field] != first[field] for other in others)]


def by_setting(records: Sequence[RunRecord]) -> list[list[RunRecord]]:
    """The runs of one setting together, ordered by the fields in which settings differ."""
    fields, found = differing(records), dict[str, list[RunRecord]]()
    for record in sorted(records, key=lambda record: [rank(record, field) for field in fields]):
        # With the neuron as it was: where a default has changed since, it is another setting.
        key = json.dumps([setting(record), record.content["neuron"]], sort_keys=True)
        found.setdefault(key, []).append(record)
    return list(found.values())


def rank(record: RunRecord, field: str) -> tuple[int, float, str]:
    """For sorting by a field: what is left open, then numbers, then names."""
    value, at = setting(record)[field], place(record, field)
    kind = 1 if at is not None else 0 if value is None else 2
    return kind, at or 0.0, shown(field, value)


def place(record: RunRecord, field: str) -> float | None:
    """Where a field's value lies among numbers: a window lies at its centre, also by name."""
    value = setting(record)[field]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    return _window_centre(record.recipe) if field == "window" else None


def _window_centre(recipe: Recipe) -> float:
    """The membrane voltage in the middle of the surrogate's window, as the run began."""
    neuron = create_neuron(recipe.neuron_config())
    low, high = neuron.surrogate.window(neuron)
    return round(float(low + high) / 2, 6)


def heading(field: str) -> str:
    """A field as a person calls it.

    >>> heading("detach_reset"), heading("timesteps")
    ('detach reset', 'T')
    """
    return _HEADINGS.get(field, field.replace("_", " "))


def shown(field: str, value: Any) -> str:
    """A value as a person writes it.

    >>> shown("eta", None), shown("clip", None), shown("detach_reset", True), shown("lr", 0.1)
    ('own', 'none', 'yes', '0.1')
    >>> shown("neuron", "lif"), shown("neuron", "im-lif")
    ('LIF', 'im-lif')
    """
    if value is None:
        return _NONES.get(field, "own")
    if isinstance(value, bool):
        return "yes" if value else "no"
    if field in ("neuron", "loss") and len(value) <= 4:
        return str(value).upper()
    return f"{value:g}" if isinstance(value, float) else str(value)


def label(record: RunRecord, fields: Sequence[str]) -> str:
    """The setting of a run in words, by some of its fields: `LIF, window mean, T = 4`."""
    return ", ".join(_phrase(field, setting(record)[field]) for field in fields)


def _phrase(field: str, value: Any) -> str:
    name = heading(field)
    if isinstance(value, bool):
        return name if value else f"no {name}"
    if field in _SPEAK_FOR_THEMSELVES:
        return shown(field, value)
    return f"{name}{' ' if isinstance(value, str | None) else ' = '}{shown(field, value)}"
