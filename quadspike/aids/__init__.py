"""What helps a network learn.

Heads (`sml`, `shortcuts`) stand beside the network while it is trained and are then thrown away;
the network is saved, counted and run without them. A learned initial membrane (`imp`) is a part
of the network.
"""

AIDS: dict[str, str] = {
    "sml": "surrogate modules: artificial heads on spikes averaged over time teach and are taught",
    "shortcuts": "backpropagation shortcuts (a reconstruction): a linear head after each stage",
    "imp": "initial membranes are learned, and stay with the network",
}

__all__ = ["AIDS"]
