"""Batch normalisation of the membrane potential."""

from __future__ import annotations

from typing import Any

from quadspike.norms.base import BatchNorm


class MPBatchNorm(BatchNorm):
    """MPBN (Guo 2023): the current is normalised as by BatchNorm, then the membrane too.

    At each step the neuron fires by `membrane(u)`, normalised with that step's statistics over
    batch and space, and so does the surrogate see it; the reset acts on `u` itself. The running
    statistics mix all steps. For inference `deploy.fold` turns it into a threshold per channel.
    """

    name = "mpbn"
    in_parts = (
        "MPBN normalises each step's membranes by their own statistics, which need the step "
        "before to be finished (fold the network for inference, and it runs whole)"
    )
    membrane: BatchNorm | None

    def __init__(self, channels: int, **options: Any) -> None:
        super().__init__(channels, **options)
        self.membrane = BatchNorm(channels, **options)
