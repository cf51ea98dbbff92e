"""From a trained network to one that runs: folding and streaming."""

from quadspike.deploy.check import FoldCheck, LayerCheck, check_fold
from quadspike.deploy.fold import fold
from quadspike.deploy.stream import Stream, stream

__all__ = ["FoldCheck", "LayerCheck", "Stream", "check_fold", "fold", "stream"]
