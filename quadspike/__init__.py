"""Deep spiking networks around the discretized quadratic integrate-and-fire neuron."""

from quadspike import deploy, losses, surrogates
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
