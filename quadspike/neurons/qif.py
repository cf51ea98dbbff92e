"""The discretized quadratic integrate-and-fire neuron."""

from __future__ import annotations

import cmath
import math
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from quadspike.errors import QuadspikeError, QuadspikeWarning
from quadspike.neurons.base import Neuron
from quadspike.neurons.numbers import check_shapes, everywhere, plain, show
from quadspike.surrogates import Surrogate, Window

_SLACK = 1e-9  # what rounding may cost a constraint that is met with equality


class Constants(NamedTuple):
    """`a`, the roots by their sum and product (real even for complex roots), `u_th`, `u_reset`."""

    a: Any
    u_sum: Any
    u_prod: Any
    u_th: Any
    u_reset: Any


class QIF(Neuron):
    """`u(t+1) = a (u - u1)(u - u2)(1 - o) + u_reset o + I`,  `o = [u >= u_th]`.

    The roots may come in either order, or as a complex conjugate pair. Allowed: a > 0,
    real fixed points u_r < u_c, and max(u1, u2) <= u_th <= u_c (for complex roots
    (u1 + u2) / 2 <= u_th <= u_c), so that a membrane that does not fire is attenuated.

    >>> neuron = QIF()
    >>> neuron.resting, neuron.critical
    (0.0, 4.5)
    >>> neuron(torch.tensor([[0.4], [0.6]])).tolist()
    [[0.0], [1.0]]
    """

    name = "qif"
    macs_per_step = 2
    roots = ("u1", "u2")

    a: Any
    u1: Any
    u2: Any
    u_th: Any
    u_reset: Any

    def __init__(
        self,
        a: Any = 0.25,
        u1: Any = 0.0,
        u2: Any = 0.5,
        u_th: Any = 0.5,
        u_reset: Any = 0.0,
        surrogate: Surrogate | str | dict[str, Any] | None = None,
        detach_reset: bool = False,
    ) -> None:
        super().__init__()
        self._hold(
            surrogate or Window(), detach_reset, a=a, u1=u1, u2=u2, u_th=u_th, u_reset=u_reset
        )
        self._check()

    # -- the equation ------------------------------------------------------------------

    @staticmethod
    def advance(u: Any, o: Any, x: Any, p: Any) -> Any:
        f = p.a * (u * u - p.u_sum * u + p.u_prod)  # a (u - u1)(u - u2)
        return f * (1 - o) + p.u_reset * o + x

    @staticmethod
    def advance_partials(u: Any, o: Any, x: Any, p: Any) -> tuple[Any, ...]:
        parabola = u * u - p.u_sum * u + p.u_prod
        silent = 1 - o
        d_u = p.a * (2 * u - p.u_sum) * silent
        d_o = p.u_reset - p.a * parabola
        d_a = parabola * silent
        d_sum = -p.a * u * silent
        d_prod = p.a * silent
        return d_u, d_o, 1.0, d_a, d_sum, d_prod, 0.0, o

    def constants(self) -> Constants:
        return Constants(self.a, self.u_sum, self.u_prod, self.u_th, self.u_reset)

    @property
    def u_sum(self) -> Any:
        """u1 + u2."""
        return _real(self.u1 + self.u2)

    @property
    def u_prod(self) -> Any:
        """u1 u2."""
        return _real(self.u1 * self.u2)

    # -- the biophysical parameters ----------------------------------------------------

    @classmethod
    def from_resting(cls, a: float, u_r: float, u_c: float, **others: Any) -> QIF:
        """The neuron with resting potential `u_r` and critical potential `u_c`.

        By Vieta u1 + u2 = u_r + u_c - 1/a and u1 u2 = u_r u_c; as in the paper u1 is the
        smaller root. The pair may be complex: the neuron only uses sum and product.

        >>> neuron = QIF.from_resting(a=0.25, u_r=0.0, u_c=4.5)
        >>> neuron.u1, neuron.u2
        (0.0, 0.5)
        """
        try:
            finite = all(math.isfinite(float(each)) for each in (a, u_r, u_c))
        except (TypeError, ValueError):
            finite = False
        if not finite:
            raise QuadspikeError(
                "QIF.from_resting takes three finite numbers, "
                f"got a={a!r}, u_r={u_r!r}, u_c={u_c!r}"
            )
        a, u_r, u_c = float(a), float(u_r), float(u_c)
        if a <= 0:
            raise QuadspikeError(f"QIF needs a > 0, got a={a:g}")
        if u_r >= u_c:
            raise QuadspikeError(
                f"QIF needs u_r < u_c, rest below the critical potential; "
                f"got u_r={u_r:g}, u_c={u_c:g}"
            )
        u1, u2 = _roots(u_r + u_c - 1 / a, u_r * u_c)
        return cls(a=a, u1=u1, u2=u2, **others)

    @property
    def resting(self) -> Any:
        """The lower fixed point u_r: with no input, u_r stays u_r."""
        return self._fixed_points()[0]

    @property
    def critical(self) -> Any:
        """The upper fixed point u_c, beyond which the membrane would run away."""
        return self._fixed_points()[1]

    def _fixed_points(self) -> tuple[Any, Any]:
        a, s, q = self.a, self.u_sum, self.u_prod
        b, discriminant = _fixed_point_equation(a, s, q)
        if not everywhere(discriminant > 0):
            raise QuadspikeError(
                f"QIF(a={show(a)}, u1+u2={show(s)}, u1*u2={show(q)}) has no two real fixed points: "
                f"needs (u1 + u2 + 1/a)^2 > 4 u1 u2, got {show(b * b)} and {show(4 * q)}; "
                "move u1 and u2 together towards 0, or lower a"
            )
        if isinstance(discriminant, Tensor):
            return real_fixed_points(a, s, q)[1:]
        low, high = _roots(b, q)
        return float(low.real), float(high.real)

    @property
    def vertex(self) -> Any:
        """Where the recurrence is least: (u1 + u2) / 2."""
        return self.u_sum / 2

    @property
    def has_real_roots(self) -> bool:
        return not isinstance(self.u1, complex)

    # -- the theory --------------------------------------------------------------------

    def _two_step_statistics(self) -> tuple[Any, Any]:
        p = self._detached_constants()
        return _theorem_1(p.a, p.u_sum, p.u_prod, p.u_th)

    # -- checks ------------------------------------------------------------------------

    @classmethod
    def parameter_names(cls) -> tuple[str, ...]:
        return ("a", "u1", "u2", "u_th", "u_reset")

    @classmethod
    def constant_names(cls) -> tuple[str, ...]:
        return (*cls.parameter_names(), "u_r", "u_c")

    @classmethod
    def parameters_from(cls, constants: Mapping[str, float]) -> dict[str, Any]:
        """Also from u_r and u_c, as `from_resting` has it; the paper's where one is left out.

        >>> QIF.parameters_from({"a": 0.5, "u_c": 2.5})
        {'a': 0.5, 'u1': 0.0, 'u2': 0.5}
        """
        if not constants.keys() & {"u_r", "u_c"}:
            return dict(constants)
        if constants.keys() & {"u1", "u2"}:
            raise QuadspikeError(
                f"{cls.name} has its roots u1 and u2 from u_r and u_c: give either, got "
                f"{', '.join(constants)}"
            )
        usual = QIF()
        fixed = {"a": usual.a, "u_r": usual.resting, "u_c": usual.critical}
        made = QIF.from_resting(**{**fixed, **constants})
        others = {name: constants[name] for name in cls.parameter_names() if name in constants}
        return {**others, "u1": plain(made.u1), "u2": plain(made.u2)}

    def _check(self) -> None:
        check_shapes("QIF", **{name: getattr(self, name) for name in self.parameter_names()})
        if not everywhere(self.a > 0):
            raise QuadspikeError(f"QIF needs a > 0, got a={show(self.a)}")
        self._settle_complex_roots()
        u_r, u_c = self._fixed_points()
        floor = _larger(self.u1, self.u2) if self.has_real_roots else self.vertex
        if not everywhere(floor <= u_c):
            raise QuadspikeError(
                f"no threshold is allowed for QIF(a={show(self.a)}, u1={show(self.u1)}, "
                f"u2={show(self.u2)}): its larger root lies above u_c = {show(u_c)}; "
                "raise u1 or u2, or lower a"
            )
        if not everywhere((self.u_th >= floor - _SLACK) & (self.u_th <= u_c + _SLACK)):
            rule = "max(u1, u2)" if self.has_real_roots else "the vertex (u1 + u2)/2"
            raise QuadspikeError(
                f"QIF needs {rule} <= u_th <= u_c, that is {show(floor)} <= u_th <= {show(u_c)}, "
                f"got u_th={show(self.u_th)}"
            )
        if not everywhere(self.a * (u_c - u_r) < 2):
            warnings.warn(
                f"the resting point {show(u_r)} is unstable: a (u_c - u_r) = "
                f"{show(self.a * (u_c - u_r))} >= 2, so a silent neuron will not settle there",
                QuadspikeWarning,
                stacklevel=3,
            )

    def _settle_complex_roots(self) -> None:
        if not (isinstance(self.u1, complex) or isinstance(self.u2, complex)):
            return
        u1, u2 = self.u1, self.u2
        if isinstance(u1, Tensor) or isinstance(u2, Tensor) or not _conjugate(u1, u2):
            raise QuadspikeError(
                f"complex roots must be two conjugate numbers, got u1={u1}, u2={u2}"
            )
        self.u2 = u1.conjugate()


def voltage_statistics(a: float, u1: complex, u2: complex, u_th: float) -> tuple[float, float]:
    """Theorem 1: mean and standard deviation of the membrane under input N(0, u_th^2).

    mean = a (u_th^2 + u1 u2),  variance = u_th^2 (1 + a^2 (2 u_th^2 + (u1 + u2)^2)).

    >>> mean, std = voltage_statistics(0.25, 0.0, 0.5, 0.5)
    >>> round(mean, 4), round(std, 5)
    (0.0625, 0.51158)
    """
    mean, std = _theorem_1(a, _real(u1 + u2), _real(u1 * u2), u_th)
    return mean, std


def _theorem_1(a: Any, u_sum: Any, u_prod: Any, u_th: Any) -> tuple[Any, Any]:
    mean = a * (u_th * u_th + u_prod)
    variance = u_th * u_th * (1 + a * a * (2 * u_th * u_th + u_sum * u_sum))
    return mean, variance**0.5


def real_fixed_points(a: Tensor, u_sum: Tensor, u_prod: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(u_c - u_r)^2, u_r and u_c; where the first is negative there are none."""
    b, discriminant = _fixed_point_equation(a, u_sum, u_prod)
    far = (b + torch.copysign(discriminant.sqrt(), b)) / 2  # no cancellation
    near = u_prod / far
    return discriminant, torch.minimum(far, near), torch.maximum(far, near)


def _fixed_point_equation(a: Any, u_sum: Any, u_prod: Any) -> tuple[Any, Any]:
    """b and the discriminant of x^2 - b x + u_prod = 0, whose roots are u_r and u_c."""
    b = u_sum + 1 / a
    return b, b * b - 4 * u_prod


def _roots(total: float, product: float) -> tuple[Any, Any]:
    """The roots of x^2 - total x + product, smaller first, without cancellation."""
    discriminant = total * total - 4 * product
    if discriminant < 0:
        imaginary = math.sqrt(-discriminant) / 2
        return complex(total / 2, -imaginary), complex(total / 2, imaginary)
    far = (total + math.copysign(math.sqrt(discriminant), total)) / 2
    near = product / far if far else 0.0
    return min(far, near), max(far, near)


def _conjugate(u1: complex, u2: complex) -> bool:
    return cmath.isclose(u1, complex(u2).conjugate(), rel_tol=1e-12)


def _real(value: Any) -> Any:
    return value.real if isinstance(value, complex) else value


def _larger(x: Any, y: Any) -> Any:
    if isinstance(x, Tensor) or isinstance(y, Tensor):
        return torch.maximum(torch.as_tensor(x), torch.as_tensor(y))
    return max(x, y)
