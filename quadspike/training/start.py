"""`train`: from a recipe to a run, with everything checked before work starts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from quadspike.data.geometry import GEOMETRIES
from quadspike.data.split import Split
from quadspike.errors import QuadspikeError, WriteError
from quadspike.models import Network
from quadspike.training.compilation import watched
from quadspike.training.datasets import choose_data
from quadspike.training.distributed import (
    asked_workers,
    choose_device,
    current,
    joined,
    restarted,
)
from quadspike.training.field_values import OWN
from quadspike.training.fields_together import check_shown_plainly
from quadspike.training.finish import Result
from quadspike.training.folder import GIVEN, RunFolder, sha256, weights_file
from quadspike.training.loop import Training
from quadspike.training.network import check_network, load_weights, make_network, to_device
from quadspike.training.observer import Observer
from quadspike.training.plan import deterministic_cost
from quadspike.training.recipe import Recipe
from quadspike.training.record import environment
from quadspike.training.reproducible import algorithms
from quadspike.training.sources import TrainingData
from quadspike.training.spending import Spending
from quadspike.training.stop import Stop


def train(
    recipe: Recipe,
    *,
    model: Network | None = None,
    data: TrainingData | tuple[Split, Split] | None = None,
    out: str | Path | None = None,
    device: str = "auto",
    data_root: str | Path | None = None,
    resume: bool = False,
    stop_after: float | None = None,
    init_from: str | Path | None = None,
    checkpoint_minutes: float = 5.0,
    observers: Sequence[Observer] = (),
) -> Result:
    """Train what the recipe says; the weights, the metrics and the record lie in `out`.

    `model` and `data` take the place of the recipe's: a `Network`, and two `Split`s (training
    and test) or a `TrainingData`. `resume` goes on from the folder's checkpoint, if it has one.
    `stop_after` minutes the run saves and ends. `init_from` is a file of weights or another
    run's folder. Under `torchrun` every worker makes the same call.

    >>> import tempfile
    >>> recipe = Recipe("mine", dataset="digits", model="mlp", epochs=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = train(recipe, out=folder, device="cpu")
    >>> result.status
    'finished'
    """
    spent = Spending()
    if not isinstance(recipe, Recipe):
        raise QuadspikeError(
            f"train takes a Recipe, got {recipe!r}; make one with create_recipe or Recipe(...)"
        )
    if not (isinstance(observers, Sequence) and all(isinstance(o, Observer) for o in observers)):
        raise QuadspikeError(
            "observers are objects derived from quadspike.training.Observer, in a list as in "
            f"observers=[Display()], got {observers!r}"
        )
    if isinstance(data, tuple | list):
        check_shown_plainly(recipe)
    if model is not None:
        recipe = recipe.but(model=OWN)
    workers = asked_workers()
    place = choose_device(device, workers)
    workers.share_of(recipe.batch_size)
    folder = RunFolder(Path(out) if out is not None else default_folder(recipe))
    resume, stop = resume or restarted(), Stop(stop_after)
    if not checkpoint_minutes >= 0:
        raise QuadspikeError(f"checkpoint_minutes must be at least 0, got {checkpoint_minutes:g}")
    folder.check(recipe, resume)
    made_with = environment(place, workers.world)  # now: the files may change while it trains
    first_weights = folder.first_weights(init_from, resume)
    with (
        algorithms(recipe.deterministic),
        current(place),
        joined(workers, place),
        watched(place) as kernels,
    ):
        with spent.on("data"):
            found = choose_data(recipe, data, data_root, place, workers)
        with spent.on("network"):
            network = make_network(recipe, found.geometry, model)
        notes, fingerprint = [], None
        named = GEOMETRIES.get(recipe.dataset)
        if found.loaded and named is not None and found.geometry.classes < named.classes:
            notes.append(
                f"{found.geometry.classes:,} of the {named.classes:,} classes of {recipe.dataset}"
            )
        going_on = folder.goes_on(resume)
        given = not found.loaded and recipe.dataset != OWN
        if given:
            notes.append(GIVEN)
        elif going_on:
            folder.check_loaded("give them again as data=")
        if first_weights is not None:
            anew = [] if going_on else load_weights(network, first_weights)
            fingerprint = None if going_on else sha256(weights_file(first_weights))
            notes.append(
                f"weights from {first_weights}" + (f", but {anew} are new" if anew else "")
            )
        with spent.on("network"):
            network = to_device(network, place)
            check_network(network, recipe, found.geometry, place)
        if recipe.deterministic and place.type == "cuda":
            cost = deterministic_cost(
                network,
                recipe,
                found.geometry,
                place,
                workers.share_of(recipe.batch_size) // recipe.accumulate,
            )
            notes.append(f"deterministic: a step takes {cost:.2f} times as long")
        run = Training(
            recipe,
            network,
            found,
            folder,
            workers,
            place,
            made_with,
            tuple(notes),
            observers,
            kernels,
            spent,
        )
        ours = folder.opened(recipe, resume, first_weights, fingerprint, given)
        with ours if workers.first else nullcontext(lambda: None) as keep:
            if workers.first and folder.goes_on(resume) != going_on:
                raise WriteError(
                    f"another process has trained in {folder.path} since; give the same command "
                    "again to go on from there"
                )
            if going_on:
                run.restore()
            if not workers.agree(run.total_step, place):
                raise QuadspikeError(
                    f"the workers do not find the same checkpoint in {folder.path}; --out must lie "
                    "where all machines see it"
                )
            if workers.first:
                folder.forget_end(going_on)
            return run.run(stop, 60 * checkpoint_minutes, keep)


def default_folder(recipe: Recipe) -> Path:
    """Where a run lies unless it is said: by name, neuron, steps, loss, aid and seed."""
    loss = "" if recipe.loss == "ce" else f"-{recipe.loss}"
    aid = "" if recipe.aid is None else f"-{recipe.aid}"
    name = f"{recipe.name}-{recipe.neuron}-t{recipe.timesteps}{loss}{aid}-seed{recipe.seed}"
    return Path("runs") / name.replace("/", "-")
