"""What helps a network learn.

Heads (`sml`, `shortcuts`) stand beside the network while it is trained and are then thrown away;
the network is saved, counted and run without them. A learned initial membrane (`imp`) is a part
of the network.
"""
