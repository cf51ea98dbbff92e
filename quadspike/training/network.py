"""The network of a recipe, new or from someone's weights."""

from __future__ import annotations

import copy
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from quadspike import composition
from quadspike.aids.imp import learn_initial_membranes
from quadspike.data.geometry import Geometry
from quadspike.errors import QuadspikeError
from quadspike.losses import LOSSES
from quadspike.models import Network, create_model, save_model
from quadspike.models.files import read_tensors, why_not_rebuilt, write_tensors
from quadspike.models.mode import evaluating
from quadspike.neurons import Neuron
from quadspike.norms import BatchNorm, synchronize
from quadspike.training.field_values import OWN
from quadspike.training.folder import weights_file
from quadspike.training.manner import Manner
from quadspike.training.recipe import Recipe
from quadspike.training.rehearsal import rehearse_on_gpu
from quadspike.training.reproducible import untuned
from quadspike.training.samples import random_batch
from quadspike.training.sizes import check_smaller
from quadspike.training.step import autocast


def make_network(recipe: Recipe, geometry: Geometry, own: Network | None = None) -> Network:
    """What the recipe asks for, its weights a function of the seed; or the user's own."""
    if own is None and recipe.model == OWN:
        raise QuadspikeError(
            f"the recipe's model is {OWN!r}: give it, train(recipe, model=...); or name one"
        )
    if own is not None and not isinstance(own, Network):
        raise QuadspikeError(
            f"model must be a quadspike.Network (a chain of layers and somas), got "
            f"{type(own).__name__}"
        )
    model = own or create_model(
        recipe.model,
        neuron=recipe.neuron_config(),
        norm=recipe.norm,
        eta=recipe.eta,
        initial_gain=recipe.initial_gain,
        num_classes=geometry.classes,
        in_channels=geometry.channels,
        timesteps=recipe.timesteps,
        residual=recipe.residual,
        image_size=geometry.size,
        dropout=recipe.dropout,
        stem_width=recipe.stem_width,
        shortcut_neuron=recipe.shortcut_neuron,
        identity_norm=recipe.identity_norm,
        readout=LOSSES[recipe.loss].readout,
        backend=recipe.backend,
        seed=recipe.seed,
    )
    if model.timesteps != recipe.timesteps:
        raise QuadspikeError(
            f"the model given has timesteps={model.timesteps}, the recipe says "
            f"{recipe.timesteps}; make them equal: recipe.but(timesteps={model.timesteps})"
        )
    if recipe.aid == "imp":
        learn_initial_membranes(model, geometry.frame, recipe.seed)
    if recipe.precision == "fp64":
        model.double()
    synchronize(model, recipe.sync_norm)
    if recipe.fixed_norm:
        for module in model.modules():
            if isinstance(module, BatchNorm):
                module.requires_grad_(False)
    return model


@torch.no_grad()
def check_network(model: Network, recipe: Recipe, geometry: Geometry, device: torch.device) -> None:
    """Refuse a network that does not fit the data, before any work: one look at two samples."""
    if not model.somas():
        raise QuadspikeError("the network has no soma: no neuron in it spikes")
    if not count_parameters(model):
        raise QuadspikeError("the network has no parameter that learns; see requires_grad")
    composition.check(recipe.parts()._replace(static=geometry.static))
    if recipe.trained_steps < recipe.timesteps:
        for module in model.modules():
            if isinstance(module, Neuron | BatchNorm) and module.per_step:
                raise QuadspikeError(composition.untrained_steps(module.name, module.per_step))
    inputs, _ = random_batch(recipe, geometry, 2, device)
    try:
        logits = _look(model, inputs, recipe, device)
    except RuntimeError as error:
        if recipe.model != OWN:
            raise
        raise QuadspikeError(
            f"the network does not take samples of the data, {list(inputs.shape)} of "
            f"{inputs.dtype} for two of them: {error}"
        ) from error  # the line of their own code that is at fault
    if logits.shape != (recipe.timesteps, 2, geometry.classes):
        raise QuadspikeError(
            f"the network gives logits {list(logits.shape)} for 2 samples at T = "
            f"{recipe.timesteps}; the data have {geometry.classes} classes, so "
            f"{[recipe.timesteps, 2, geometry.classes]} is needed"
        )
    check_small(model, recipe, geometry, device)


def _look(model: Network, inputs: Tensor, recipe: Recipe, device: torch.device) -> Tensor:
    """The logits of an evaluation, whose kernels are then there for the next."""
    with evaluating(model), autocast(recipe, device), untuned():
        rehearse_on_gpu(partial(model, inputs), recipe, device)
        logits: Tensor = model(inputs)
    return logits


@torch.no_grad()
def check_small(model: Network, recipe: Recipe, geometry: Geometry, device: torch.device) -> None:
    """Refuse to shrink images that cannot be, or for a network that takes one size alone."""
    small = recipe.small_size
    if small is None:
        return
    if not geometry.static:
        raise QuadspikeError(f"small_size={small} shrinks images, not recordings; leave it out")
    check_smaller(small, geometry.size, recipe.dataset)
    images, _ = random_batch(recipe, geometry, 2, device)
    try:
        _look(model, Manner(size=small).show(images), recipe, device)
    except (QuadspikeError, RuntimeError) as error:
        raise QuadspikeError(
            f"small_size={small}: the network does not take images of {small} x {small} beside "
            f"{geometry.size} x {geometry.size}: {error}"
        ) from None


def load_weights(model: Network, source: Path) -> list[str]:
    """Start from the weights in a file or a run's folder; the names that were left as drawn.

    Only the classifier, the last linear layer, may have another shape, and initial membranes
    may be new.
    """
    path = weights_file(source)
    saved = read_tensors(path)
    own = model.state_dict()
    last = [name for name, m in model.named_modules() if isinstance(m, nn.Linear)][-1:]
    classifier = {name for name in own if last and name.startswith(f"{last[0]}.")}
    membranes = {name for name in own.keys() - saved.keys() if name.endswith(".initial_u")}
    fitting = {n: t for n, t in saved.items() if n in own and own[n].shape == t.shape}
    unlike = sorted((own.keys() | saved.keys()) - fitting.keys() - classifier - membranes)
    if unlike:
        raise QuadspikeError(
            f"the weights in {path} are of another network: {len(unlike)} tensors do not fit, the "
            f"first is {unlike[0]!r}; only the classifier may differ"
        )
    model.load_state_dict(fitting, strict=False)
    return sorted(own.keys() - fitting.keys())


def unshared(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Copies on the CPU that share no memory, as safetensors wants them."""
    return {n: t.detach().to("cpu", copy=True).contiguous() for n, t in tensors.items()}


def write_weights(model: Network, tensors: dict[str, Tensor], path: Path) -> None:
    """`tensors` as the weights of `model`; with its configuration where it can be rebuilt."""
    if model.config is not None and not why_not_rebuilt(model):
        model = copy.deepcopy(model)
        model.load_state_dict(tensors)
        save_model(model, path)
    else:
        write_tensors(unshared(tensors), path)


def copy_weights(model: nn.Module) -> dict[str, Tensor]:
    """A snapshot, on the model's device."""
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}


def count_parameters(model: nn.Module) -> int:
    """Learned numbers."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def to_device(model: Network, device: torch.device) -> Network:
    """On the device, convolutions channels-last."""
    return model.to(device).to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]
