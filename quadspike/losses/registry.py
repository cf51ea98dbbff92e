"""The losses a recipe can name."""

from __future__ import annotations

from typing import Literal, NamedTuple


class LossEntry(NamedTuple):
    """A loss in one line, its equation, what it looks at, and how its network is read out."""

    summary: str
    equation: str
    taps: tuple[str, ...] = ()
    readout: Literal["mean", "last"] = "mean"


LOSSES: dict[str, LossEntry] = {
    "ce": LossEntry("cross-entropy of the logits' mean over time", "CE(mean_t O(t), y)"),
    "tet": LossEntry(
        "temporal efficient training: every step answers for itself",
        "(1 - tet_lambda) mean_t CE(O(t), y) + tet_lambda mean (O - tet_phi)^2",
    ),
    "im": LossEntry(
        "information maximisation: membranes centred on their threshold",
        "CE(mean_t O(t), y) + im_weight mean_l (mean u_l - u_th)^2",
        taps=("mean",),
    ),
    "lts": LossEntry("the last step alone is trained and read out", "CE(O(T), y)", readout="last"),
}
