"""One recipe with other values of its fields."""

from quadspike.sweeps.folder import SweepFolder
from quadspike.sweeps.jobs import Ended, plan
from quadspike.sweeps.run import Sweep, sweep
from quadspike.sweeps.settings import settings

__all__ = ["Ended", "Sweep", "SweepFolder", "plan", "settings", "sweep"]
