"""Which of a recipe's epochs, steps and updates go together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadspike.errors import QuadspikeError

if TYPE_CHECKING:
    from quadspike.training.recipe import Recipe


def check_schedule_fields(recipe: Recipe) -> None:
    """Refuse what leaves nothing to train, or has nothing to change."""
    if recipe.trained_steps > recipe.timesteps:
        raise QuadspikeError(
            f"train_timesteps={recipe.train_timesteps} is more than timesteps="
            f"{recipe.timesteps}; training shows as many steps or fewer"
        )
    if recipe.full_epochs and recipe.trained_steps == recipe.timesteps:
        raise QuadspikeError(
            f"full_epochs={recipe.full_epochs} are for after epochs of fewer steps, but all show "
            f"{recipe.timesteps}; say how many the others show with train_timesteps"
        )
    if recipe.full_epochs > recipe.epochs:
        raise QuadspikeError(
            f"full_epochs={recipe.full_epochs} are more than all {recipe.epochs} epochs; show all "
            "steps in fewer"
        )
    if (recipe.small_size is None) != (recipe.small_epochs == 0):
        raise QuadspikeError(
            f"small_size={recipe.small_size} and small_epochs={recipe.small_epochs} go together: "
            "the side of the first epochs' images, and how many epochs these are"
        )
    if recipe.small_epochs >= recipe.epochs:
        raise QuadspikeError(
            f"small_epochs={recipe.small_epochs} leave none of the {recipe.epochs} epochs for "
            "images of full size; make it less"
        )
    if recipe.graded_epochs >= recipe.epochs:
        raise QuadspikeError(
            f"graded_epochs={recipe.graded_epochs} leave none of the {recipe.epochs} epochs for "
            "spikes; grade fewer"
        )
    if recipe.warmup_epochs >= recipe.epochs:
        raise QuadspikeError(
            f"the warm-up of {recipe.warmup_epochs:g} epochs takes all of the {recipe.epochs}; "
            "shorten it"
        )
    if recipe.nesterov and not (recipe.optimizer in ("sgd", "muon") and recipe.momentum):
        raise QuadspikeError(
            f"nesterov is for sgd and muon with momentum, got optimizer={recipe.optimizer!r}, "
            f"momentum={recipe.momentum:g}; leave it out"
        )
    if recipe.batch_size % recipe.accumulate:
        raise QuadspikeError(
            f"a batch of {recipe.batch_size} does not fall into {recipe.accumulate} equal parts; "
            "choose a batch_size that accumulate divides"
        )
