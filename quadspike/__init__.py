"""Deep spiking networks around the discretized quadratic integrate-and-fire neuron."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quadspike import deploy, losses, surrogates
    from quadspike.call import Call, Timed
    from quadspike.errors import QuadspikeError, QuadspikeWarning
    from quadspike.models import Chain, Network, create_model, list_models, load_model, save_model
    from quadspike.neurons import LIF, QIF, Neuron, create_neuron, voltage_statistics
    from quadspike.norms import TDBatchNorm1d, TDBatchNorm2d
    from quadspike.soma import Soma
    from quadspike.taps import Taps
    from quadspike.training import Recipe, train

__version__ = "0.1.0"
__all__ = [
    "LIF",
    "QIF",
    "Call",
    "Chain",
    "Network",
    "Neuron",
    "QuadspikeError",
    "QuadspikeWarning",
    "Recipe",
    "Soma",
    "TDBatchNorm1d",
    "TDBatchNorm2d",
    "Taps",
    "Timed",
    "create_model",
    "create_neuron",
    "deploy",
    "list_models",
    "load_model",
    "losses",
    "save_model",
    "surrogates",
    "train",
    "voltage_statistics",
]
_HOMES = {
    "call": {"Call", "Timed"},
    "errors": {"QuadspikeError", "QuadspikeWarning"},
    "models": {"Chain", "Network", "create_model", "list_models", "load_model", "save_model"},
    "neurons": {"LIF", "QIF", "Neuron", "create_neuron", "voltage_statistics"},
    "norms": {"TDBatchNorm1d", "TDBatchNorm2d"},
    "soma": {"Soma"},
    "taps": {"Taps"},
    "training": {"Recipe", "train"},
}


if not TYPE_CHECKING:  # or every name would be one

    def __getattr__(name: str) -> Any:
        """Import what is asked for, and no earlier: `quadspike --help` need not wait for torch."""
        for home, names in _HOMES.items():
            if name in names:
                globals()[name] = found = getattr(import_module(f"quadspike.{home}"), name)
                return found
        try:
            return import_module(f"quadspike.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"quadspike.{name}":
                raise
        raise AttributeError(f"module 'quadspike' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
