"""What every neuron shares: parameters, checks, and the two ways to run it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from itertools import chain
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from quadspike import ops
from quadspike.constant import constant
from quadspike.errors import QuadspikeError, not_floating
from quadspike.neurons.density import MembraneDensity
from quadspike.neurons.numbers import as_parameter, brief, detached, everywhere, plain
from quadspike.state import State
from quadspike.surrogates import Ramp, Surrogate, create_surrogate

_RAMP = Ramp()


class Neuron(nn.Module):
    """A neuron is its equation: `advance` moves the membrane, `fire` makes the spike.

    Both are plain arithmetic on a membrane `u`, the last spike `o`, the input `x` and
    the constants `p`, so the same lines run in the reference and in the kernels. A
    parameter is a number, per channel `[C]`, or per step and channel `[T, C]`; an
    `nn.Parameter` is learned, anything else is fixed. A spike is 0 or 1, or may have a sign; a
    constant named `emitted` multiplies it on its way out, while reset and state keep it plain.

    A subclass states `name`, `macs_per_step`, `parameter_names`, `constants` (with one `u_th`),
    `advance` and, for the fast paths, `advance_partials`; its constructor ends in `_hold`.
    """

    name: ClassVar[str]
    macs_per_step: ClassVar[int]
    """Multiply-accumulates one update costs, input included."""

    per_step: ClassVar[str] = ""
    """What every time step has of its own, if anything, as a verb and its object."""
    only_reference: ClassVar[str] = ""
    """Why the fused paths cannot run this neuron, if they cannot."""

    in_parts: ClassVar[str] = ""
    """Why they run it in several parts, if they do."""

    cannot_stream: ClassVar[str] = ""
    """Why this neuron cannot go on from a state, if it cannot."""

    roots: ClassVar[tuple[str, ...]] = ()
    """Parameters that may be complex numbers."""

    learned: ClassVar[tuple[str, ...]] = ()
    """Parameters that are learned even if given as plain numbers."""

    rate_factor: ClassVar[float] = 1.0
    """What its parameters learn at, as a share of the learning rate."""

    progress: Tensor
    """The share of the training that is done, where the surrogate evolves with it."""

    detach_reset: bool

    graded: bool = False
    """Whether it emits `grade` instead of spikes, as a training may for a while."""

    # -- the equation ------------------------------------------------------------------

    def constants(self) -> Any:
        """The numbers the equation reads, as a named tuple."""
        raise NotImplementedError

    @staticmethod
    def advance(u: Any, o: Any, x: Any, p: Any) -> Any:
        """The next membrane."""
        raise NotImplementedError

    @staticmethod
    def advance_partials(u: Any, o: Any, x: Any, p: Any) -> tuple[Any, ...]:
        """Derivatives of `advance` in u, o, x and each field of p, in that order."""
        raise NotImplementedError

    @staticmethod
    def excess(u: Any, p: Any) -> Any:
        """How far the membrane is past its threshold: the surrogate's argument."""
        return u - p.u_th

    @staticmethod
    def excess_partials(u: Any, p: Any) -> tuple[Any, ...]:
        """Derivatives of `excess` in u and in the threshold; no other constant learns by it."""
        return 1.0, -1.0

    @staticmethod
    def fire(u: Any, p: Any) -> Any:
        """Whether the neuron spikes; a membrane at the threshold does."""
        return u >= p.u_th

    @staticmethod
    def grade(u: Any, p: Any) -> Any:
        """`u / (2 u_th)` cut to [0, 1]: a spike as a ramp around the threshold."""
        part = u / (2 * p.u_th)
        inside = (part > 0).to(u.dtype) * (part < 1).to(u.dtype)
        return part * inside + (part >= 1).to(u.dtype)

    @staticmethod
    def grade_excess(u: Any, p: Any) -> Any:
        """How far the membrane is from the middle of the ramp, in lengths of it."""
        return u / (2 * p.u_th) - 0.5

    @staticmethod
    def grade_excess_partials(u: Any, p: Any) -> tuple[Any, ...]:
        """Derivatives of `grade_excess` in u and in the threshold."""
        slope = 0.5 / p.u_th
        return slope, -u * slope / p.u_th

    @property
    def firing(self) -> Callable[[Any, Any], Any]:
        """What it emits by its membrane."""
        return self.grade if self.graded else self.fire

    @property
    def firing_excess(self) -> Callable[[Any, Any], Any]:
        """What `firing_slope` is asked at."""
        return self.grade_excess if self.graded else self.excess

    @property
    def firing_slope(self) -> Surrogate:
        """What a gradient passes: of spikes the surrogate, of grades their own slope."""
        return _RAMP if self.graded else self.surrogate

    # -- running it --------------------------------------------------------------------

    def forward(self, x: Tensor) -> Tensor:
        """Spikes `[T, B, ...]` of `x`'s dtype for input `[T, B, ...]`, from rest."""
        return self._result(x, None, keep_state=False).out.view(x.shape)

    def run(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """Spikes for a chunk of steps, and where the neuron stands after it.

        `state=None` starts from rest; passing the returned state on gives the same spikes
        as one call over the whole sequence.
        """
        result = self._result(x, state, keep_state=True)
        assert result.state is not None
        return result.out.view(x.shape), result.state

    def _result(self, x: Tensor, state: State | None, keep_state: bool) -> ops.SomaResult:
        check_sequence(x)
        self.check_channels(x.shape[2] if x.ndim > 2 else None)
        if keep_state:
            self.check_streams()
        if state is not None:
            check_state(state, tuple(x.shape[1:]), self.name)
        steps, batch = x.shape[:2]
        flat = x.reshape(steps * batch, *x.shape[2:])
        given: dict[str, Any] = {"state": state, "keep_state": keep_state, "label": self.name}
        return ops.soma(flat, self, steps=steps, batch=batch, **given)

    def mix(self, currents: Iterable[Tensor]) -> Iterable[Tensor]:
        """The currents of all steps, `[B, ...]` each, as they reach the membrane."""
        return currents

    def check_streams(self) -> None:
        """Refuse to keep or take up a state where none says enough."""
        if self.cannot_stream:
            raise QuadspikeError(
                f"{self.name} cannot be streamed: {self.cannot_stream}; give it whole sequences"
            )

    def check_grades(self) -> None:
        """Refuse to emit grades where there is no single threshold above 0 to measure them by."""
        if type(self).fire is not Neuron.fire:
            raise QuadspikeError(
                f"{self.name!r} cannot emit grades: it does not fire at one threshold; train it "
                "with spikes alone, graded_epochs=0"
            )
        if not everywhere(self.threshold > 0):
            raise QuadspikeError(
                f"a grade is u / (2 u_th), and this {self.name!r} has u_th = "
                f"{brief(self.threshold)}; give it a threshold above 0, or graded_epochs=0"
            )

    def check_channels(self, channels: int | None) -> None:
        """Refuse parameters per channel that do not fit an input with `channels` channels."""
        for name in self.parameter_names():
            value = getattr(self, name)
            if isinstance(value, Tensor) and value.ndim and value.shape[-1] != channels:
                raise QuadspikeError(
                    f"{self.name}: {name} is for {value.shape[-1]} channels, "
                    f"the input has {'none' if channels is None else channels}"
                )

    def fit(self, channels: int, timesteps: int | None) -> None:
        """Give every channel, and every step, its own parameters, where the neuron has such.

        A soma calls it once; `timesteps` is None where nobody said how many there will be.
        """

    def project(self) -> None:
        """Back into what is allowed, after an update of learned parameters; on the device.

        `train` calls it after each step of the optimizer, as a loop of one's own must.
        """

    # -- what it is --------------------------------------------------------------------

    @property
    def surrogate(self) -> Surrogate:
        """What stands in for the slope of the spike."""
        return self._surrogate

    @surrogate.setter
    def surrogate(self, surrogate: Any) -> None:
        self._surrogate = create_surrogate(surrogate)
        if self._surrogate.evolves and "progress" not in self._buffers:
            mine = next(chain(self.parameters(), self.buffers()), None)
            start = torch.zeros((), device=None if mine is None else mine.device)
            self.register_buffer("progress", start, persistent=False)

    @property
    def threshold(self) -> Any:
        """The firing threshold as the surrogate and the normalisation see it: detached."""
        return detached(self.u_th)

    @property
    def origin(self) -> Any:
        """The membrane whose `excess` is 0, where the surrogate is centred: detached."""
        return self.threshold

    @property
    def edges(self) -> tuple[Any, ...]:
        """The membranes at which the spike changes: detached."""
        return (self.threshold,)

    def voltage_statistics(self, exact: bool = False) -> tuple[Any, Any]:
        """Mean and spread of the membrane under input N(0, u_th^2).

        Approximate in closed form (two steps, no reset), or from the exact stationary
        density with reset.
        """
        kind: Any = type(self)  # a type checker knows no hash of a class
        if exact:
            return _stationary_statistics(kind, self._scalar_constants())
        if not has_closed_form(kind):
            raise QuadspikeError(
                f"no closed form of the membrane's statistics for {kind.__name__}; use a surrogate "
                "that needs none, such as rectangle"
            )
        return self._two_step_statistics()

    def _two_step_statistics(self) -> tuple[Any, Any]:
        raise NotImplementedError

    def density(self, input_mean: float = 0.0, input_std: float | None = None) -> MembraneDensity:
        """The stationary density of the membrane under Gaussian input, reset included.

        `input_std` is the threshold unless given, as tdBN makes it.
        """
        scalar = self._scalar_constants()
        if input_std is None and scalar.u_th <= 0:
            raise QuadspikeError(
                f"the input's spread is u_th unless given, but u_th = {scalar.u_th:g}; "
                "give input_std > 0"
            )
        std = scalar.u_th if input_std is None else input_std
        return MembraneDensity.stationary(self, scalar, input_mean, std)

    def _detached_constants(self) -> Any:
        p = self.constants()
        return type(p)(*map(detached, p))

    def _scalar_constants(self) -> Any:
        p = self.constants()
        if any(isinstance(value, Tensor) and value.numel() > 1 for value in p):
            raise QuadspikeError(
                f"the exact density is for one set of parameters; this {self.name!r} has them "
                "per channel or step: make a neuron with one channel's numbers"
            )
        # One channel's may be held as [1] or [1, 1].
        return type(p)(*(v.item() if isinstance(v, Tensor) else v for v in p))

    def config(self) -> dict[str, Any]:
        """What `create_neuron` needs to make it again."""
        return {
            "name": self.name,
            **{name: plain(getattr(self, name)) for name in self.parameter_names()},
            "learned": [name for name, _ in self.named_parameters(recurse=False)],
            "surrogate": self.surrogate.config(),
            "detach_reset": self.detach_reset,
        }

    @classmethod
    def parameter_names(cls) -> tuple[str, ...]:
        """The constructor's numbers, by name."""
        raise NotImplementedError

    @classmethod
    def constant_names(cls) -> tuple[str, ...]:
        """What `parameters_from` takes, by name."""
        return cls.parameter_names()

    @classmethod
    def parameters_from(cls, constants: Mapping[str, float]) -> dict[str, Any]:
        """The constructor's numbers that these constants stand for."""
        return dict(constants)

    def extra_repr(self) -> str:
        parts = [f"{name}={brief(getattr(self, name))}" for name in self.parameter_names()]
        return ", ".join([*parts, f"surrogate={self.surrogate}"])

    def _hold(self, surrogate: Any, detach_reset: bool, **parameters: Any) -> None:
        """Keep what a constructor was given: each number fixed, or learned, by its name."""
        for name, given in parameters.items():
            learned = name in self.learned
            value = as_parameter(self.name, name, given, name in self.roots and not learned)
            if learned and not isinstance(value, nn.Parameter):
                value = nn.Parameter(torch.as_tensor(value, dtype=torch.float32).clone())
            if isinstance(value, nn.Parameter):
                self.register_parameter(name, value)
            elif isinstance(value, Tensor):
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)
        self.surrogate = surrogate
        self.detach_reset = detach_reset


@constant
def has_closed_form(kind: type[Neuron]) -> bool:
    """Whether a neuron's statistics have one; that of a line it replaced is not its own."""
    stated = (vars(each) for each in kind.__mro__)
    own = next(each for each in stated if {"advance", "_two_step_statistics"} & each.keys())
    none = Neuron._two_step_statistics
    return own.get("_two_step_statistics", none) is not none


def check_sequence(x: Tensor) -> None:
    """A sequence is a floating tensor `[T, B, ...]` with at least one step."""
    if given := not_floating(x):
        raise QuadspikeError(f"input must be a floating tensor [T, B, ...], got {given}")
    if x.ndim < 2:
        raise QuadspikeError(f"input must be [T, B, ...], got shape {tuple(x.shape)}")
    if 0 in x.shape:
        raise QuadspikeError(f"the input has an empty axis: {tuple(x.shape)}")


@lru_cache(maxsize=64)
def _stationary_statistics(kind: type[Neuron], p: Any) -> tuple[float, float]:
    # A surrogate asks at every call, and the answer is a function of the equation alone.
    density = MembraneDensity.stationary(kind, p, 0.0, p.u_th)
    return density.mean, density.std


def check_state(state: State, shape: tuple[int, ...], where: str) -> None:
    """A state goes on only with inputs of the shape `[B, ...]` it was made for."""
    if not isinstance(state, State):
        raise QuadspikeError(
            f"{where}: a state is what run() returned beside the spikes, got {type(state).__name__}"
        )
    if tuple(state.u.shape) != shape:
        raise QuadspikeError(
            f"{where}: the state is for inputs {tuple(state.u.shape)} a step, got {shape}; "
            "start from rest for another batch or size"
        )
