"""How fast a training step is: ours, its floor, and what others make of the same network."""

from quadspike.benchmark.record import Record, describe
from quadspike.benchmark.run import PARTS, measure
from quadspike.benchmark.setting import SETTINGS, Job, Setting, find_setting

__all__ = [
    "PARTS",
    "SETTINGS",
    "Job",
    "Record",
    "Setting",
    "describe",
    "find_setting",
    "measure",
]
