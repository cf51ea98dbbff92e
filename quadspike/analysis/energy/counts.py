"""How many operations a network does: from its shapes, and from the spikes that occur."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from quadspike.errors import QuadspikeError
from quadspike.models import Network
from quadspike.models.mode import evaluating
from quadspike.models.synapses import Synapse
from quadspike.neurons import Neuron
from quadspike.norms import BatchNorm
from quadspike.soma import Soma


@dataclass(frozen=True)
class SynapseCount:
    """A convolution or linear layer: `macs` per evaluation, `evaluations` per sample.

    `macs` is the nominal count, image borders padded. `real` says that no neuron fired since the
    network's input or the synapse before, so that each operation multiplies.
    """

    layer: str
    kind: str
    macs: int
    evaluations: int
    real: bool


@dataclass(frozen=True)
class SomaCount:
    """A layer of `neurons`, each doing `macs_per_step` multiply-accumulates a step."""

    layer: str
    kind: str
    neurons: int
    macs_per_step: int


@dataclass(frozen=True)
class Counts:
    """Every layer in the order it runs, and the modules whose parameters nobody counts."""

    layers: tuple[SynapseCount | SomaCount, ...]
    outputs: int
    uncounted: tuple[str, ...]


@dataclass
class Traffic:
    """What really arrived at one synapse, summed over the samples."""

    elements: int = 0
    magnitude: float = 0.0
    largest: float = 0.0
    accumulates: float = 0.0
    """Operations when an input of size n costs n accumulates."""
    multiplies: float = 0.0
    """Operations when a nonzero input costs one multiply-accumulate."""
    graded: bool = False

    @property
    def rate(self) -> float:
        return self.magnitude / self.elements

    def add(self, synapse: Synapse, x: Tensor, real: bool) -> None:
        # A real-valued input is computed densely: zeros are multiplied like any number.
        active = torch.ones_like(x) if real else x.ne(0).to(x.dtype)
        self.elements += x.numel()
        self.magnitude += x.abs().sum(dtype=torch.float64).item()
        self.largest = max(self.largest, x.abs().amax().item())
        self.accumulates += synaptic_operations(synapse, x)
        self.multiplies += synaptic_operations(synapse, active)
        self.graded |= not torch.equal(x, x.round())


@dataclass
class Measurement:
    """The traffic of every synapse and the spikes of every soma by name, over `samples` samples."""

    samples: int = 0
    traffic: dict[str, Traffic] = field(default_factory=dict)
    fired: dict[str, float] = field(default_factory=dict)
    """Firing rates of single samples, added up."""


def count_operations(model: Network, frames: Tensor, timesteps: int) -> Counts:
    """Count by one pass over `frames`, a batch of one sample whose values do not matter.

    What a synapse gives is real-valued until a neuron has read it, and so is what any other layer
    makes of it; so is all there is before any neuron has fired, for one that reads it later too.
    """
    layers: list[SynapseCount | SomaCount] = []
    real: list[Tensor] = []
    fired = False

    def observe(label: str, module: nn.Module, x: Tensor, out: Tensor) -> None:
        nonlocal fired
        if isinstance(module, Soma):
            neuron = module.neuron
            layers.append(SomaCount(label, neuron.name, out[0].numel(), neuron.macs_per_step))
        if isinstance(module, Soma | Neuron):
            fired = True
            return
        reads_real = not fired or any(_same_memory(x, each) for each in real)
        if isinstance(module, Synapse):
            kind = "linear" if isinstance(module, nn.Linear) else "conv"
            weight = module.weight
            macs = weight.numel() * (out[0].numel() // weight.shape[0])
            layers.append(SynapseCount(label, kind, macs, x.shape[0], reads_real))
        if reads_real:
            real.append(x)
        if reads_real or isinstance(module, Synapse):
            real.append(out)

    try:
        logits, _ = _observe(model, observe, frames, timesteps)
    except (QuadspikeError, RuntimeError) as error:  # torch's, of a size
        raise QuadspikeError(
            f"the network cannot run on input {tuple(frames.shape)}: {error}"
        ) from error
    return Counts(tuple(layers), logits.shape[-1], _uncounted(model))


def measure(
    model: Network, batches: Iterable[Tensor], timesteps: int, static: bool, counts: Counts
) -> Measurement:
    """Run `batches` and add up what arrives at each synapse and how often each soma fires."""
    result = Measurement()
    real = {c.layer for c in counts.layers if isinstance(c, SynapseCount) and c.real}

    def observe(label: str, module: nn.Module, x: Tensor, out: Tensor) -> None:
        del out
        if isinstance(module, Synapse):
            result.traffic.setdefault(label, Traffic()).add(module, x, label in real)

    for batch in batches:
        samples = batch.shape[0 if static else 1]
        result.samples += samples
        _, seen = _observe(model, observe, batch, timesteps)
        for label, rate in seen.items():
            result.fired[label] = result.fired.get(label, 0.0) + samples * rate
    for label, traffic in result.traffic.items():
        if not math.isfinite(traffic.magnitude):
            raise QuadspikeError(
                f"layer {label!r} received values that are not finite numbers; "
                'find where they start with model(x, taps="finite")'
            )
    return result


def synaptic_operations(synapse: Synapse, x: Tensor) -> float:
    """The sum over inputs of |x| times the number of outputs the input really reaches.

    An input near the border reaches fewer outputs than the nominal count says. Every
    channel reaches the same outputs, so all are added up first and one ones-kernel serves.

    >>> synaptic_operations(nn.Conv2d(1, 4, 3, padding=1), torch.ones(1, 1, 2, 2))
    64.0
    """
    if isinstance(synapse, nn.Linear):
        return x.abs().sum(dtype=torch.float64).item() * synapse.out_features
    summed = x.abs().sum(dim=(0, 1), dtype=torch.float64)[None, None]
    names = ("kernel_size", "stride", "padding", "dilation", "padding_mode")
    options: dict[str, Any] = {name: getattr(synapse, name) for name in names}
    kind = nn.Conv1d if isinstance(synapse, nn.Conv1d) else nn.Conv2d
    # On "meta" initial weights draw no random numbers.
    reach = kind(1, 1, bias=False, dtype=torch.float64, device="meta", **options)
    reach.to_empty(device=x.device)
    with torch.no_grad():
        reach.weight.fill_(1.0)
        reached: float = reach(summed).sum().item()
    return reached * (synapse.out_channels // synapse.groups)


Observer = Callable[[str, nn.Module, Tensor, Tensor], None]
_MAXIMA = nn.MaxPool1d | nn.MaxPool2d | nn.AdaptiveMaxPool1d | nn.AdaptiveMaxPool2d
_MEANS = nn.AvgPool1d | nn.AvgPool2d | nn.AdaptiveAvgPool1d | nn.AdaptiveAvgPool2d
_PASSING = nn.Flatten | _MEANS | _MAXIMA
"""What leaves a factor of all of a channel's values as it is."""


def _observe(
    model: Network, observe: Observer, x: Tensor, timesteps: int
) -> tuple[Tensor, dict[str, float]]:
    """Run `model` in evaluation mode and show `observe` each soma and layer as it runs.

    A synapse that reads emitted numbers, also through a pool, is shown the plain spikes: its
    weights can take the number in. After a sum they cannot. Gives the logits and each soma's own
    firing rate, before any sum.
    """
    calls: Counter[str] = Counter()
    scaled: list[tuple[Tensor, Tensor]] = []

    def hook(name: str, module: nn.Module, args: Any, kwargs: dict[str, Any], out: Any) -> None:
        x = next(iter((*args, *kwargs.values())), None)
        if not (isinstance(x, Tensor) and isinstance(out, Tensor)):
            return
        plain = _plain_spikes(x, scaled)
        # The largest of numbers below 0 is not that of their spikes.
        negative = isinstance(module, _MAXIMA) and bool((x * plain < 0).any())
        if isinstance(module, _PASSING) and plain is not x and not negative:
            scaled.append((out, module.forward(plain)))
        calls[name] += 1
        observe(name if calls[name] == 1 else f"{name}@{calls[name]}", module, plain, out)
        if isinstance(module, Soma):
            emitted = getattr(module.neuron.constants(), "emitted", 1.0)
            if isinstance(emitted, Tensor) and emitted.ndim < 2 and module.residual != "after":
                worth = emitted.view(-1, *[1] * (out.ndim - 2))
                spikes = out / torch.where(worth == 0, 1, worth)  # of nothing, nothing
                scaled.append((out, spikes))

    with evaluating(model), ExitStack() as hooks, torch.no_grad():
        for name, module in model.named_modules():
            if isinstance(module, Synapse | Soma) or not any(module.children()):
                observed = partial(hook, name)
                hooks.enter_context(module.register_forward_hook(observed, with_kwargs=True))
        if not model.somas():
            return model(x, timesteps=timesteps), {}
        logits, seen = model(x, taps="rate", timesteps=timesteps)
    return logits, {label: float(values["rate"].mean()) for label, values in seen.items()}


def _plain_spikes(x: Tensor, scaled: list[tuple[Tensor, Tensor]]) -> Tensor:
    for out, spikes in scaled:
        if _same_memory(out, x):  # all of it in whatever shape, or a part
            return spikes.as_strided(x.shape, x.stride(), x.storage_offset() - out.storage_offset())
    return x


def _same_memory(one: Tensor, other: Tensor) -> bool:
    return one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()


def _uncounted(model: Network) -> tuple[str, ...]:
    inside_somas = {part for soma in model.somas().values() for part in soma.modules()}

    def counted(module: nn.Module) -> bool:
        if isinstance(module, BatchNorm):
            return not module.cannot_fold  # into its synapse
        return isinstance(module, Synapse) or module in inside_somas

    return tuple(
        f"{name} ({type(module).__name__})"
        for name, module in model.named_modules()
        if next(module.parameters(recurse=False), None) is not None and not counted(module)
    )
