"""The paper's networks and small ones, by name."""

from quadspike.models.chain import Chain, Dropout
from quadspike.models.files import load_model, save_model
from quadspike.models.network import Network
from quadspike.models.registry import create_model, describe_models, list_models
from quadspike.models.resnet import Block

__all__ = [
    "Block",
    "Chain",
    "Dropout",
    "Network",
    "create_model",
    "describe_models",
    "list_models",
    "load_model",
    "save_model",
]
