"""One soma by the reference and by a fast path, and whether they agree.

Two ways to round may differ in a spike where a membrane lies within rounding of its
threshold, and in a gradient where it lies at an edge of the window: inputs are drawn until
none does.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from quadspike import Soma, create_neuron
from quadspike.call import Call
from quadspike.draws import Draws
from quadspike.neurons import NEURONS, Neuron
from quadspike.norms import NORMS, BatchNorm
from quadspike.ops.constants import at_step
from quadspike.randomness import Key
from quadspike.surrogates import SURROGATES
from quadspike.taps import Taps
from tests.pairwise import Case


def fused(kinds: dict[str, Any]) -> list[str]:
    """The names of a registry that the fast paths run."""
    return [name for name, kind in kinds.items() if not kind.only_reference]


STREAMED = [name for name, kind in NEURONS.items() if not kind.cannot_stream]
"""Neurons that run alone, without being told how many steps there will be."""

AXES: dict[str, list[Any]] = {
    "steps": [1, 2, 4, 10, 16],
    "surrogate": fused(SURROGATES),
    "norm": [
        "batch",
        "running",
        "none",
        "per step",
        "tebn",
        "tebn, running",
        "mpbn",
        "mpbn, running",
    ],
    "residual": [None, "before", "after", "before, one step", "after, one step"],
    "layout": ["channels last", "contiguous", "flat", "one axis"],
    "learned": ["none", "layer", "channel", "step"],
    "size": [(2, 3, 3), (3, 5, 2), (1, 8, 4)],  # samples, channels, side
    "dtype": [torch.float32, torch.bfloat16],
    "neuron": fused(NEURONS),
    "static": [False, True],
    "detach_reset": [False, True],
    "mean": [False, True],  # whether the loss sees the mean membrane
    "graded": [False, True],
}
TIE = 1e-5
KEY = Key(seed=3, step=7, first=2)
DEFAULTS = {
    "steps": 2,
    "surrogate": "window",
    "norm": "batch",
    "residual": None,
    "layout": "channels last",
    "dtype": torch.float32,
    "neuron": "qif",
    "static": False,
    "learned": "none",
    "detach_reset": False,
    "size": (3, 5, 2),
    "mean": False,
    "graded": False,
}


class PerStep(BatchNorm):
    """Scale and shift learned for each step: an affine of its own, no statistics."""

    def __init__(self, channels: int, steps: int) -> None:
        super().__init__(channels)
        self.scale = nn.Parameter(1 + 0.2 * torch.randn(steps, channels))
        self.shift = nn.Parameter(0.2 * torch.randn(steps, channels))

    def affine(self, x: Tensor, repeats: int = 1) -> tuple[Tensor, Tensor]:
        return self.scale, self.shift


def twins(channels: int, device: str, backend: str = "triton", **options: Any) -> list[Soma]:
    """The same soma twice, by the reference and by the backend."""
    pair = [Soma(channels, backend=kind, **options) for kind in ("reference", backend)]
    return [soma.to(device) for soma in pair]


def build(case: Case) -> Soma:
    """The soma of a case, with parameters away from their defaults."""
    channels = case["size"][1]
    options = {"name": case["neuron"], "surrogate": case["surrogate"]}
    neuron = create_neuron({**options, "detach_reset": case["detach_reset"]})
    shape = {"layer": (), "channel": (channels,), "step": (case["steps"], channels)}
    if case["learned"] != "none":
        for name in neuron.parameter_names():
            value = getattr(neuron, name) + 0.05 * torch.rand(shape[case["learned"]])
            delattr(neuron, name)
            neuron.register_parameter(name, nn.Parameter(value))
    neuron.graded = case["graded"] and type(neuron).fire is Neuron.fire
    place = case["residual"] and case["residual"].split(",")[0]
    named = case["norm"].split(",")[0]
    norm = None if named == "none" else named if named in NORMS else "tdbn"
    soma = Soma(channels, neuron, norm=norm, residual=place, timesteps=case["steps"])
    if case["norm"] == "per step":
        soma.norm = PerStep(channels, case["steps"])
    for part in soma.modules():
        if isinstance(part, BatchNorm):
            nn.init.normal_(part.weight, 1, 0.2)
            nn.init.normal_(part.bias, 0, 0.2)
            nn.init.normal_(part.running_mean, 0, 0.2)
            nn.init.uniform_(part.running_var, 0.5, 2)
    if norm == "tebn":
        nn.init.normal_(soma.norm.p, 1, 0.3)
    return soma.train("running" not in case["norm"])


def draw(case: Case, samples: int) -> Tensor:
    """Activations of `samples` samples in the case's shape, layout and type."""
    _, channels, side = case["size"]
    spatial = {"flat": (), "one axis": (side,)}.get(case["layout"], (side, side + 1))
    x = torch.randn(samples, channels, *spatial).to(case["dtype"])
    return x.contiguous(memory_format=torch.channels_last) if case["layout"][:2] == "ch" else x


def tensors_of(case: Case) -> dict[str, Tensor]:
    """What goes in and, as weights, what its loss multiplies the output by."""
    samples, steps = case["size"][0], case["steps"]
    tensors = {"x": draw(case, samples * (1 if case["static"] else steps))}
    if case["residual"]:
        tensors["residual"] = draw(case, samples * (1 if "one" in case["residual"] else steps))
        if case["residual"].startswith("after"):
            tensors["residual"].round_()  # spikes are added to spikes: a type holds them whole
    return {**tensors, "weights": draw(case, samples * steps)}


def run(soma: Soma, case: Case, backend: str, tensors: dict[str, Tensor], dtype: torch.dtype):
    """Output, membranes (of the reference) and every gradient."""
    soma = copy.deepcopy(soma)
    soma.backend = backend
    x = tensors["x"].to(dtype).requires_grad_()
    residual = tensors.get("residual")
    if residual is not None:
        residual = residual.to(dtype).requires_grad_()
    kinds = [*["membrane"] * (backend == "reference"), *["mean"] * case["mean"]]
    taps = Taps(tuple(kinds)) if kinds else None
    call = Call(case["steps"], case["size"][0], taps=taps, key=KEY)
    out = soma(x, call, residual)
    seen = call.seen.get("Soma", {})
    means = [seen["mean"]] if case["mean"] else []
    steps = case["steps"]  # up to 1 a membrane
    pull = [torch.arange(1.0, steps + 1).to(mean) * (out.numel() / steps**2) for mean in means]
    torch.autograd.backward([out, *means], [tensors["weights"].to(dtype), *pull])
    results = {"mean": seen["mean"].detach()} if case["mean"] else {}
    results |= {f"gradient of {name}": p.grad for name, p in soma.named_parameters()}
    results["gradient of x"] = x.grad
    results |= {name: value for name, value in soma.named_buffers() if "running" in name}
    if residual is not None:
        results["gradient of the residual"] = residual.grad
    return out, seen.get("membrane"), results


def near_a_tie(soma: Soma, membrane: Tensor) -> bool:
    """Whether some membrane is within rounding of the threshold or of the window's edge."""
    neuron = soma.neuron
    for edge in (*neuron.edges, *neuron.surrogate.window(neuron)):
        edge = torch.as_tensor(edge, device=membrane.device)
        if edge.ndim:
            lead = edge if edge.ndim == 2 else edge[None]
            edge = lead.view(lead.shape[0], 1, -1, *[1] * (membrane.ndim - 3))
        if ((membrane - edge).abs() < TIE).any():
            return True
    return bool(neuron.surrogate.draws) and near_a_drawn_edge(neuron, membrane)


def near_a_drawn_edge(neuron: Neuron, membrane: Tensor) -> bool:
    """Whether a slope made of steps at random places changes within rounding of a membrane."""
    surrogate = neuron.surrogate
    draws = Draws.of(KEY, "Soma", surrogate.draws, membrane[0])
    p, s = neuron.constants(), surrogate.constants(neuron)
    for t, u in enumerate(membrane):
        v = neuron.excess(u, at_step(p, t, u))
        below, above = (surrogate.slope(v + shift, s, draws.at(t)) for shift in (-TIE, TIE))
        if not torch.equal(below, above):
            return True
    return False


def whole(case: Case) -> Case:
    """With all its choices, and those that make no sense together exchanged."""
    case = {**DEFAULTS, **case}
    if case["layout"] == "flat" and case["size"][0] == 1:  # of one value there are no statistics
        case["size"] = (2, *case["size"][1:])
    if case["norm"].startswith("mpbn"):
        # One norm behind the other takes gradients away that the first must not pass on: what
        # rounding leaves of them is larger, most of all where statistics are of few values.
        case["size"] = (6, *case["size"][1:])
    if case["neuron"] == "im-lif" and case["surrogate"] in ("window", "learned-width"):
        case["surrogate"] = "rectangle"  # the others need the membrane's statistics
    return case


def check(case: Case, device: str = "cpu", seed: int = 0, backend: str = "triton") -> None:
    """Both agree: the same spikes, and gradients to the accuracy of the type."""
    case = whole(case)
    exact = torch.promote_types(case["dtype"], torch.float32)
    rounding = 2e-5 if exact == torch.float32 else 1e-11
    if case["norm"].startswith("mpbn"):
        rounding = max(10 * rounding, torch.finfo(case["dtype"]).eps)  # spikes' are stored, too
    for attempt in range(20):
        torch.manual_seed(seed + attempt)
        soma = build(case).to(device, exact)
        tensors = tensors_of(case)
        tensors = {name: value.to(device) for name, value in tensors.items()}
        expected, membrane, gradients = run(soma, case, "reference", tensors, exact)
        if not near_a_tie(soma, membrane):
            break
    else:
        raise AssertionError("no input without a tie was found")
    out, _, results = run(soma, case, backend, tensors, case["dtype"])
    assert out.dtype == case["dtype"]
    assert out.stride() == expected.stride() or out.shape[2:].numel() == 1
    coarse = torch.finfo(case["dtype"]).eps
    # A type holds spikes whole; a number that is emitted for one is rounded, on a way of its own.
    fractions = "emitted" in soma.neuron.constants()._fields and case["dtype"] != exact
    rtol, atol = (coarse, 0.0) if fractions else (0.0, 0.0)
    if soma.neuron.graded:
        rtol, atol = max(coarse, rounding), rounding
    torch.testing.assert_close(out, expected.to(case["dtype"]), rtol=rtol, atol=atol)
    for name, value in gradients.items():
        if value is None:
            assert results[name] is None or not results[name].any(), name
            continue
        stored = name.endswith((" x", "residual"))  # in the activations' type
        terms = 1 if stored else out.numel() / value.numel()  # of one sum, which may cancel
        size = float(value.abs().max()) + 1e-3 * terms
        got = results[name].to(exact) / size
        assert got.shape == value.shape, name
        tolerance = max(coarse, rounding) if stored else rounding
        torch.testing.assert_close(
            got, value / size, rtol=tolerance, atol=tolerance, msg=lambda m, n=name: f"{n}: {m}"
        )
