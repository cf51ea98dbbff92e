"""Which of a recipe's fields its neuron can have: its window, its constants."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, get_args

from quadspike.errors import QuadspikeError, QuadspikeWarning
from quadspike.neurons import create_neuron
from quadspike.norms import create_norm
from quadspike.surrogates import Center

if TYPE_CHECKING:
    from quadspike.training.recipe import Recipe


def check_window_fields(recipe: Recipe) -> None:
    """Refuse a window beside another surrogate, and the shape of one that is not there."""
    if recipe.window is not None and recipe.surrogate not in (None, "window"):
        raise QuadspikeError(
            f"window={recipe.window!r} places the analytic window, but "
            f"surrogate={recipe.surrogate!r} asks for another; leave one of them out"
        )
    if recipe.window is None and recipe.surrogate != "window":
        for field, usual in (("window_scale", 1), ("window_height", "one")):
            if getattr(recipe, field) != usual:
                raise QuadspikeError(
                    f"{field}={getattr(recipe, field)!r} shapes the analytic window: say where "
                    f"it lies with window={' or '.join(get_args(Center))}"
                )


def check_constants(recipe: Recipe) -> None:
    """Refuse what the neuron, its surrogate or the norm would refuse once a network is made."""
    if not (recipe.neuron_constants or recipe.graded_epochs):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QuadspikeWarning)  # told when it is made
        neuron = create_neuron(recipe.neuron_config())
    create_norm(recipe.norm, 1, neuron.threshold, 1.0, recipe.timesteps)
    neuron.surrogate.window(neuron)
    if recipe.graded_epochs:
        neuron.check_grades()
