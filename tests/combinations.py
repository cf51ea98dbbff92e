"""All that `quadspike.composition` lets together."""

from __future__ import annotations

from itertools import product
from typing import get_args

from quadspike.composition import Parts, objection
from quadspike.losses import LOSSES
from quadspike.neurons import NEURONS
from quadspike.norms import NORMS
from quadspike.surrogates import SURROGATES
from quadspike.training.field_values import AidName

AIDS = get_args(AidName)


def combinations() -> list[Parts]:
    """All neurons, norms, surrogates, losses and aids that go together."""
    every = product(NEURONS, NORMS, (None, *SURROGATES), LOSSES, (None, *AIDS))
    return [parts for choice in every if not objection(parts := Parts(*choice))]
