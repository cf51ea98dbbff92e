"""One recipe with other values of its fields."""

from quadspike.sweeps.files import sweep_table
from quadspike.sweeps.folder import State, SweepFolder
from quadspike.sweeps.jobs import Ended, Job, plan
from quadspike.sweeps.run import Sweep, sweep
from quadspike.sweeps.settings import Setting, settings

__all__ = [
    "Ended",
    "Job",
    "Setting",
    "State",
    "Sweep",
    "SweepFolder",
    "plan",
    "settings",
    "sweep",
    "sweep_table",
]
