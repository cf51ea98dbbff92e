"""`quadspike::soma` and `quadspike::soma_backward`: the fused soma as torch sees it.

Functional: they mutate nothing and return no views. Who computes is one of their arguments, and
is imported at the first call.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor

from quadspike.ops import layout
from quadspike.ops.reference import compute_dtype
from quadspike.ops.signature import INCOMING_SCHEMA, KINDS, SCHEMA, Arguments, Incoming

_COUNT = len(Incoming._fields)


def _soma(*args: Any) -> tuple[Tensor, ...]:
    a = Arguments(*args)
    if a.backend == "triton":
        from quadspike.ops.triton.launch_forward import forward
    else:
        from quadspike.ops.vectorised.forward import forward
    return forward(a)


def _soma_backward(*args: Any) -> tuple[Tensor, ...]:
    given, a = Incoming(*args[:_COUNT]), Arguments(*args[_COUNT:])
    if a.backend == "triton":
        from quadspike.ops.triton.launch_backward import backward
    else:
        from quadspike.ops.vectorised.backward import backward
    return tuple(backward(given, a))


soma = torch.library.custom_op(
    "quadspike::soma",
    _soma,
    mutates_args=(),
    schema=f"({SCHEMA}) -> ({', '.join(['Tensor'] * 5)})",
)
soma_backward = torch.library.custom_op(
    "quadspike::soma_backward",
    _soma_backward,
    mutates_args=(),
    schema=f"({INCOMING_SCHEMA}, {SCHEMA}) -> ({', '.join(['Tensor'] * 7)})",
)


@soma.register_fake
def _(*args: Any) -> tuple[Tensor, ...]:
    a = Arguments(*args)
    normed = a.scale is not None and a.mode in ("batch", "running")
    moments = (4, a.x.shape[1]) if normed else (0,)
    affine = (2, *cast(Tensor, a.scale).shape) if normed else (0,)
    wide = compute_dtype(a.x)
    return (
        layout.empty(a.x, a.out_steps * a.batch, a.emit or a.x.dtype),
        layout.empty(a.x, a.keep * a.batch, wide),
        a.x.new_empty(a.steps if a.mean else 0, dtype=wide),
        a.x.new_empty(moments, dtype=wide),
        a.x.new_empty(affine, dtype=wide),
    )


@soma_backward.register_fake
def _(*args: Any) -> tuple[Tensor, ...]:
    affine_wanted, wanted = args[_COUNT - 2 : _COUNT]
    return gradients(Arguments(*args[_COUNT:]), affine_wanted, wanted)


def gradients(a: Arguments, affine_wanted: bool, wanted: str) -> tuple[Tensor, ...]:
    """New memory for what the backward operator returns; empty where nothing is asked for."""
    before = a.residual if a.place == "before" else None
    wide = compute_dtype(a.x)
    nothing = a.x.new_empty(0, dtype=wide)
    summed = affine_wanted or a.mode == "batch"
    like = a.scale if a.scale is not None and summed else nothing
    state = a.batch if a.initial_u is not None else 0
    return (
        layout.empty(a.x, a.x.shape[0], a.x.dtype),
        nothing if before is None else layout.empty(a.x, before.shape[0], before.dtype),
        torch.empty_like(like),
        torch.empty_like(like),
        nothing.new_empty((sum(rows_of(a, wanted)), a.x.shape[1])),
        layout.empty(a.x, state, wide),
        layout.empty(a.x, state, wide if a.initial_o is None else a.initial_o.dtype),
    )


def rows_of(a: Arguments, wanted: str) -> list[int]:
    """How many sums per channel the gradient of each of the neuron's constants is made of."""
    each = {KINDS.index("s"): a.steps}
    return [each.get(kind, 1) * (flag == "1") for kind, flag in zip(a.p_kinds, wanted, strict=True)]


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    a = Arguments(*inputs)
    *_, moments, affine = output
    ctx.set_materialize_grads(False)
    ctx.mark_non_differentiable(moments, affine)
    ctx.residual_steps = a.residual_steps
    kept = a._replace(
        residual=a.residual if a.place == "before" else None,
        shift=a.shift if a.mode == "given" else None,
        running_mean=None,
        running_var=None,
    )
    tensors = [value if isinstance(value, Tensor) else None for value in kept]
    ctx.save_for_backward(moments, affine, *tensors, *a.constants)
    ctx.plain = [None if isinstance(value, Tensor | list) else value for value in kept]
    ctx.numbers = a.numbers


def _differentiate(
    ctx: Any, g_out: Tensor | None, g_membrane: Tensor | None, g_mean: Tensor | None, *_: Any
) -> Any:
    moments, affine, *saved = ctx.saved_tensors
    fields, constants = saved[: len(ctx.plain)], saved[len(ctx.plain) :]
    both = zip(ctx.plain, fields, strict=True)
    values = [plain if tensor is None else tensor for plain, tensor in both]
    a = Arguments(*values)._replace(constants=list(constants), numbers=ctx.numbers)
    needs = Arguments(*ctx.needs_input_grad)
    grads: dict[str, Any] = dict.fromkeys(Arguments._fields)
    grads["constants"] = [None] * len(constants)
    if not ctx.numbers:
        grads["numbers"] = []  # torch takes None for a list of numbers, but not for an empty one
    if g_out is None and g_membrane is None and g_mean is None:
        return tuple(grads.values())
    if not a.emit:
        g_out = None
    if g_out is not None:
        # Once, for both: a residual after the neuron passes the same gradient on.
        g_out = layout.settle(g_out, layout.has_channels_last(a.x))
    flags = iter(needs.constants)
    wanted = "".join("01"[bool(kind and next(flags))] for kind in a.p_kinds)
    affine_wanted = bool(needs.scale or needs.shift)
    g_x, g_residual, g_scale, g_shift, g_constants, g_u, g_o = soma_backward(
        g_out, g_membrane, g_mean if a.mean else None, moments, affine, affine_wanted, wanted, *a
    )
    grads["x"] = g_x
    if needs.residual:
        grads["residual"] = g_residual if a.place == "before" else g_out
        if a.place == "after" and g_out is not None and ctx.residual_steps == 1 and a.steps > 1:
            grads["residual"] = g_out.unflatten(0, (a.steps, a.batch)).sum(0)
    if affine_wanted:
        grads["scale"], grads["shift"] = g_scale, g_shift
    if needs.initial_u or needs.initial_o:
        grads["initial_u"], grads["initial_o"] = g_u, g_o
    shares = iter(g_constants.split(rows_of(a, wanted)))
    tensors = iter(range(len(constants)))
    for kind, share in zip(a.p_kinds, shares, strict=True):
        if kind:
            place = next(tensors)
            if len(share):
                like = constants[place]
                grads["constants"][place] = share.sum() if like.ndim == 0 else share.view_as(like)
    return tuple(grads.values())


soma.register_autograd(_differentiate, setup_context=_remember)
