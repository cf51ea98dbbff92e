"""Everything that decides a run, in one frozen value."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np

from quadspike import composition
from quadspike.aids.shortcuts import ShortcutForm
from quadspike.errors import QuadspikeError, check_name
from quadspike.models.registry import MODELS
from quadspike.neurons import NEURONS
from quadspike.surrogates import Center, Height
from quadspike.training.constants import Constants, checked, had_by, one_by_one, together
from quadspike.training.field_values import (
    OWN,
    AidName,
    Dataset,
    ImageTransform,
    LossName,
    OptimizerName,
    Precision,
    check_values,
)
from quadspike.training.fields_together import RECORDINGS, check_together
from quadspike.training.manner import Manner
from quadspike.written import capitals

_drafting = ContextVar("drafting", default=False)


@contextmanager
def drafting() -> Iterator[None]:
    """Recipes made inside are not checked: they are complete only with fields still to come."""
    before = _drafting.set(True)
    try:
        yield
    finally:
        _drafting.reset(before)


@dataclass(frozen=True)
class Recipe:
    """A setting: data, network, neuron, loss and schedule. Every field can be overridden.

    >>> recipe = Recipe("mine", dataset="digits", model="cnn", epochs=5)
    >>> recipe.but(timesteps=8).timesteps
    8

    Args:
        name: What the run is called.
        dataset: digits, digits-events, cifar10, cifar100, imagenet or cifar10-dvs; own from Python.
        model: A network (see `quadspike models`); own from Python.
        timesteps: Steps a static image is shown, or frames of a recording.
        neuron: qif, qif-learned, lif, plif, glif, lsg, im-lif, ternary or ternary-trained; see
            `quadspike compare --list`.
        neuron_constants: Numbers of that neuron in place of its own: a, u1, u2 (or u_r, u_c), u_th
            and u_reset of qif; beta, u_th and u_reset of lif. In a sweep each is neuron.NAME.
        surrogate: Another surrogate than the neuron's own: rectangle, window, triangle, arctan,
            sigmoid, dspike, evolving, learned-width or local-zo.
        window: The centre of the analytic window: threshold, mean, stationary or a membrane.
        window_scale: Half the width of that window, in its sigma.
        window_height: Its height: one, or unit-area.
        detach_reset: Cut the gradient through the reset, where the neuron does not anyway.
        norm: tdbn, bn, tebn or mpbn.
        eta: tdBN's factor on the threshold; 1, and 1/sqrt(2) where branches meet, without it.
        initial_gain: What the weights of every normalisation start from.
        fixed_norm: Leave its weights and biases as they start.
        sync_norm: Whether workers share the statistics of a batch.
        residual: fire-then-sum or sum-then-fire, for the ResNets.
        shortcut_neuron: Whether projection shortcuts of a ResNet have neurons.
        identity_norm: A normalisation on its identity shortcuts, for sum-then-fire.
        stem_width: Channels of a ResNet's stem; the network's own without it.
        dropout: Share dropped before the classifier.
        loss: ce (of the logits' mean over time), tet, im or lts.
        tet_lambda: TET's weight of the distance to phi.
        tet_phi: TET's target for every logit.
        im_weight: IM-Loss's weight of the membranes' distance from their threshold.
        aid: What helps training: sml or shortcuts (heads that inference has not), or imp.
        shortcut_form: How heads of shortcuts count: linear, cosine, fixed or sum.
        label_smoothing: Share of a label given to all classes alike.
        epochs: Passes over the training samples.
        batch_size: Samples a step, over all workers.
        accumulate: Parts a batch is computed in, one after the other, to save memory.
        train_timesteps: Steps a static image is shown while training, where fewer do; the
            recipe's otherwise.
        full_epochs: Last epochs that show all steps again, after train_timesteps.
        small_size: Side to which images are shrunk in the first small_epochs.
        small_epochs: How many epochs these are.
        graded_epochs: First epochs in which a neuron emits u / (2 u_th), cut to [0, 1], instead of
            a spike.
        optimizer: sgd (with momentum), muon (sgd, but normalised weights keep their length and
            turn, in all their directions alike) or adam (weight decay as L2).
        lr: The highest learning rate, of muon for what does not turn; from there a cosine to zero.
        turn: About the angle, in radians, by which a step of muon turns weights at the highest
            learning rate.
        momentum: Of sgd and muon.
        nesterov: Whether to look one step of that momentum ahead.
        weight_decay: On the weights of synapses but those that muon turns; none on normalisation,
            biases and neurons.
        decay_all: Weight decay on those too.
        warmup_epochs: Epochs in which the learning rate rises to its highest.
        clip: Largest norm of the gradient, if any.
        ema: Decay, per step, of an average of the weights that is evaluated and kept instead of
            the last; 0 for none.
        precision: fp32, bf16 (autocast) or fp64.
        cutout: Side of the hole in training images; 0 for none.
        autoaugment: Whether training images go through AutoAugment, for cifar10 and cifar100.
        image_transform: paper or usual, for imagenet.
        split: Which CIFAR10-DVS split: tebn, last100 or random.
        frames_by: Frames of a recording with equal count of events or equal time; the data set's
            usual without it: count for cifar10-dvs, time for digits-events.
        frame_values: What a pixel of a frame is: counts of events, or binary.
        frame_size: Side of a frame of cifar10-dvs; 48 without it, 128 for the sensor's own pixels.
        event_transform: How clips of cifar10-dvs are varied: paper (flip and turn), tet (flip and
            roll) or crop (move and flip).
        validation: Training samples held out to make choices on.
        evaluate_every: Epochs between two evaluations; the first and the last always have one.
        seed: Everything random follows from it.
        deterministic: Only algorithms that repeat bit for bit (slower on a GPU).
        backend: Who computes the somas: auto, reference, vectorised or triton.
    """

    name: str
    dataset: Dataset
    model: str
    timesteps: int = 2
    neuron: str = "qif"
    neuron_constants: Mapping[str, float] = Constants()
    surrogate: str | None = None
    window: Center | float | None = None
    window_scale: float = 1.0
    window_height: Height = "one"
    detach_reset: bool = False
    norm: str = "tdbn"
    eta: float | None = None
    initial_gain: float = 1.0
    fixed_norm: bool = False
    sync_norm: bool = True
    residual: str = "fire-then-sum"
    shortcut_neuron: bool = True
    identity_norm: bool = False
    stem_width: int | None = None
    dropout: float = 0.0
    loss: LossName = "ce"
    tet_lambda: float = 0.05
    tet_phi: float = 1.0
    im_weight: float = 0.005
    aid: AidName | None = None
    shortcut_form: ShortcutForm = "linear"
    label_smoothing: float = 0.0
    epochs: int = 100
    batch_size: int = 128
    accumulate: int = 1
    train_timesteps: int | None = None
    full_epochs: int = 0
    small_size: int | None = None
    small_epochs: int = 0
    graded_epochs: int = 0
    optimizer: OptimizerName = "sgd"
    lr: float = 0.1
    turn: float = 0.03
    momentum: float = 0.9
    nesterov: bool = False
    weight_decay: float = 1e-4
    decay_all: bool = False
    warmup_epochs: float = 0.0
    clip: float | None = None
    ema: float = 0.0
    precision: Precision = "fp32"
    cutout: int = 0
    autoaugment: bool = False
    image_transform: ImageTransform = "paper"
    split: str | None = None
    frames_by: str | None = None
    frame_values: str = "counts"
    frame_size: int | None = None
    event_transform: str = "paper"
    validation: int = 0
    evaluate_every: int = 1
    seed: int = 0
    deterministic: bool = False
    backend: str = "auto"

    def __post_init__(self) -> None:
        if _drafting.get():
            return
        for field in dataclasses.fields(self):
            if isinstance(value := getattr(self, field.name), np.generic):  # from an array
                object.__setattr__(self, field.name, value.item())
        check_values(self)
        constants = checked(self.neuron, self.neuron_constants)
        object.__setattr__(self, "neuron_constants", constants)
        check_together(self)

    def parts(self) -> composition.Parts:
        """The choices that have to make sense together."""
        return composition.Parts(
            self.neuron,
            self.norm,
            self.surrogate,
            self.loss,
            self.aid,
            self.window,
            self.backend,
            stages=self.model == OWN or bool(MODELS[self.model].stages),
            static=self.dataset not in RECORDINGS,
            fewer_steps=self.trained_steps < self.timesteps,
        )

    @property
    def trained_steps(self) -> int:
        """Time steps of a sample while training, before the full epochs if there are any."""
        return self.timesteps if self.train_timesteps is None else self.train_timesteps

    def manner_in(self, epoch: int) -> Manner:
        """How this epoch trains, counted from 0.

        >>> recipe = Recipe("mine", dataset="digits", model="cnn", timesteps=4, epochs=3)
        >>> recipe = recipe.but(train_timesteps=1, full_epochs=1, graded_epochs=2)
        >>> [recipe.manner_in(epoch).steps for epoch in range(3)]
        [1, 1, None]
        >>> [recipe.manner_in(epoch).graded for epoch in range(3)]
        [True, True, False]
        """
        full = self.epochs - epoch <= self.full_epochs
        return Manner(
            steps=None if full else self.train_timesteps,
            graded=epoch < self.graded_epochs,
            size=self.small_size if epoch < self.small_epochs else None,
        )

    def evaluates(self, epoch: int) -> bool:
        """Whether the network is judged after this epoch, counted from 1.

        >>> recipe = Recipe("mine", dataset="digits", model="cnn", epochs=8, evaluate_every=3)
        >>> [epoch for epoch in range(1, 9) if recipe.evaluates(epoch)]
        [1, 3, 6, 8]
        """
        return epoch in (1, self.epochs) or epoch % self.evaluate_every == 0

    def neuron_words(self) -> str:
        """The neuron as a person calls it.

        >>> Recipe("mine", "digits", "cnn", neuron_constants={"u_th": 0.6}).neuron_words()
        'QIF (u_th=0.6)'
        """
        constants = f" ({self.neuron_constants})" * bool(self.neuron_constants)
        return capitals(self.neuron) + constants

    def neuron_config(self) -> dict[str, Any]:
        """The neuron with its surrogate, as `create_neuron` takes it."""
        parameters = NEURONS[self.neuron].parameters_from(self.neuron_constants)
        config: dict[str, Any] = {"name": self.neuron, **parameters}
        if self.detach_reset:
            config["detach_reset"] = True
        if self.window is not None or self.surrogate == "window":
            centre = {} if self.window is None else {"center": self.window}
            shape = {"scale": self.window_scale, "height": self.window_height}
            config["surrogate"] = {"name": "window", **centre, **shape}
        elif self.surrogate is not None:
            config["surrogate"] = self.surrogate
        return config

    def but(self, **changes: Any) -> Recipe:
        """The same with other fields, checked anew; `neuron.a` is the neuron's constant a.

        Constants that another neuron does not have stay behind.
        """
        fields = self.as_dict()
        if changes.get("neuron") in NEURONS:
            fields["neuron_constants"] = had_by(changes["neuron"], self.neuron_constants)
        return Recipe.from_dict(together({**fields, **changes}))

    def as_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {**dataclasses.asdict(self), "neuron_constants": dict(self.neuron_constants)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Recipe:
        """From what `as_dict` gave; a field this version does not know is refused."""
        names = [field.name for field in dataclasses.fields(cls)]
        for name in values:
            check_name("field of a recipe", name, names)
        for field in dataclasses.fields(cls):
            if field.default is dataclasses.MISSING and field.name not in values:
                raise QuadspikeError(f"a recipe needs {field.name!r}")
        return cls(**values)

    def differences(self, other: Recipe) -> dict[str, tuple[Any, Any]]:
        """The fields in which two recipes differ, with both values; constants one by one."""
        ours, theirs = one_by_one(self.as_dict()), one_by_one(other.as_dict())
        return {
            name: (ours.get(name), theirs.get(name))
            for name in {**ours, **theirs}
            if ours.get(name) != theirs.get(name)
        }
