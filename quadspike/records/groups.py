"""Groups of records: who is in them, and in what their recipes differ."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from quadspike.errors import QuadspikeError
from quadspike.neurons import NEURONS, create_neuron
from quadspike.records.runs import RunRecord, read_record
from quadspike.records.store import Store
from quadspike.records.words import phrase, shown
from quadspike.training.constants import PREFIX, one_by_one
from quadspike.training.fields import field_order
from quadspike.training.recipe import Recipe
from quadspike.written import NOTHING

NOT_A_SETTING = frozenset({"name", "seed", "evaluate_every"})
"""Fields of a recipe in which the runs of one setting may differ."""
_MATTERS_WITH = {
    "turn": ("optimizer", "muon"),
    "tet_lambda": ("loss", "tet"),
    "tet_phi": ("loss", "tet"),
    "im_weight": ("loss", "im"),
}
"""Fields that change nothing but with one value of another."""


def group_names(store: Store) -> list[str]:
    """Every group that has a run."""
    found = {name.rpartition("/")[0] for name in store.names("runs")}
    return sorted(found - {""})


def read_group(store: Store, group: str) -> list[RunRecord]:
    """The runs of a group, or with "" those in none."""
    return read_runs(store, lambda name: name.rpartition("/")[0] == group)


def read_runs(store: Store, wanted: Callable[[str], bool]) -> list[RunRecord]:
    """The runs whose names are wanted; one that cannot be read is refused by its name."""
    found = []
    for name in filter(wanted, store.names("runs")):
        try:
            found.append(read_record(name, store.read("runs", name)))
        except QuadspikeError as error:
            raise QuadspikeError(f"the record {name}: {error}; see `records verify`") from None
    return found


def read_groups(store: Store, groups: Sequence[str]) -> list[RunRecord]:
    """The runs of several groups, each of which must have some; a run in two of them once."""
    known = group_names(store)
    listed = f"those that have are: {', '.join(known)}" if known else "no group has"
    if not groups:
        raise QuadspikeError(f"name a group that has runs on record; {listed}")
    for group in groups:
        if group not in known:
            raise QuadspikeError(f"the group {group!r} has no runs on record; {listed}")
    return distinct([record for group in groups for record in read_group(store, group)])


def ungrouped(store: Store) -> list[RunRecord]:
    """The runs in no group, each once."""
    return distinct(read_group(store, ""))


def distinct(records: Sequence[RunRecord]) -> list[RunRecord]:
    """Each run once, by whatever names it is on record: with scored weights, if under any."""
    found: dict[str, RunRecord] = {}
    for record in records:
        run = json.dumps([record.recipe.as_dict(), record.metrics], sort_keys=True)
        if not found.setdefault(run, record).content["export"] and record.content["export"]:
            found[run] = record
    return list(found.values())


def setting(record: RunRecord) -> dict[str, Any]:
    """What may differ between runs: the recipe but for what is no setting or does not matter, the
    weights it started from, and the device.

    Constants of the neuron are there one by one, as `neuron.a`, where the recipe has them.
    """
    recipe = one_by_one(record.recipe.as_dict()).items()
    own = {
        field: value
        for field, value in recipe
        if field not in NOT_A_SETTING and matters(field, record.recipe)
    }
    return {**own, "init_from": record.first_weights, "device": record.summary["device"]}


def matters(field: str, recipe: Recipe) -> bool:
    """Whether a field changes anything in this recipe."""
    needed = _MATTERS_WITH.get(field)
    return needed is None or bool(getattr(recipe, needed[0]) == needed[1])


def differing(records: Sequence[RunRecord]) -> list[str]:
    """The fields in which not all of the runs are the same, in the recipe's order."""
    found = list(map(setting, records))
    fields = sorted({field for each in found for field in each}, key=field_order)
    unlike = [f for f in fields if any(each.get(f) != found[0].get(f) for each in found)]
    # A constant that one leaves to its neuron may be the one that another is given.
    return [f for f in unlike if any(value(r, f) != value(records[0], f) for r in records)]


def value(record: RunRecord, field: str) -> Any:
    """What a run has of a field; of a constant that its recipe leaves out, the neuron's own."""
    found, name = setting(record), field.removeprefix(PREFIX)
    if field in found:
        return found[field]
    if name not in NEURONS[record.recipe.neuron].constant_names():
        return NOTHING
    # As it was; where every layer has learned its own, as it began.
    neuron = record.content["neuron"] or create_neuron(record.recipe.neuron_config()).config()
    return neuron.get(name)


def by_setting(records: Sequence[RunRecord]) -> list[list[RunRecord]]:
    """The runs of one setting together, ordered by the fields in which settings differ."""
    fields, found = differing(records), dict[str, list[RunRecord]]()
    for record in sorted(records, key=lambda record: [rank(record, field) for field in fields]):
        # With the neuron as it was: where a default has changed since, it is another setting.
        had = [value(record, field) for field in fields]
        key = json.dumps([had, record.content["neuron"]], sort_keys=True)
        found.setdefault(key, []).append(record)
    return list(found.values())


def rank(record: RunRecord, field: str) -> tuple[int, float, str]:
    """For sorting by a field: what is left open, then numbers, then names."""
    found, at = value(record, field), place(record, field)
    kind = 1 if at is not None else 0 if found is None else 2
    return kind, at or 0.0, shown(field, found)


def place(record: RunRecord, field: str) -> float | None:
    """Where a field's value lies among numbers: a window lies at its centre, also by name."""
    found = value(record, field)
    if isinstance(found, int | float) and not isinstance(found, bool):
        return float(found)
    return _window_centre(record.recipe) if field == "window" else None


def _window_centre(recipe: Recipe) -> float:
    """The membrane voltage in the middle of the surrogate's window, as the run began."""
    neuron = create_neuron(recipe.neuron_config())
    low, high = neuron.surrogate.window(neuron)
    return round(float(low + high) / 2, 6)


def label(record: RunRecord, fields: Sequence[str]) -> str:
    """The setting of a run in words, by some of its fields: `LIF, window mean, T = 4`."""
    found = {field: value(record, field) for field in fields}
    return ", ".join(phrase(field, had) for field, had in found.items() if had != NOTHING)
