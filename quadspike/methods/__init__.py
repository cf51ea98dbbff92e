"""Every system of the paper's Tables 1 and 2 as a few fields of a recipe."""

from quadspike.errors import check_name
from quadspike.methods import aids, learning, neurons, norms, ours
from quadspike.methods.method import DATASETS, NETWORKS, Figure, Kind, Method, Source

__all__ = [
    "DATASETS",
    "METHODS",
    "NETWORKS",
    "Figure",
    "Kind",
    "Method",
    "Source",
    "find_method",
]

METHODS: dict[str, Method] = {
    method.key: method for part in (ours, norms, learning, aids, neurons) for method in part.METHODS
}


def find_method(key: str) -> Method:
    """The method of that name.

    >>> find_method("tebn").overrides["norm"]
    'tebn'
    """
    return METHODS[check_name("method", key, METHODS)]
