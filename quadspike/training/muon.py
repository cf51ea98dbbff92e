"""Muon for spiking networks: normalised weights turn, all of their directions alike.

PyTorch has a Muon too; it takes matrices only, and no step of it can be captured or skipped.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

import torch
from torch import Tensor, nn

from quadspike.deploy.fold import Synapse, pairs
from quadspike.norms import BatchNorm
from quadspike.soma import Soma

_QUINTIC = 3.4445, -4.7750, 2.0315
_ROUNDS = 5


def normalised_weights(model: nn.Module) -> list[Tensor]:
    """The weights of every synapse right before a normalisation, for which their length is all one.

    >>> from quadspike import create_model
    >>> len(normalised_weights(create_model("resnet19")))
    21
    """
    found = pairs(model, (Soma, BatchNorm))
    return [
        synapse.weight
        for _, synapse, module in found
        if isinstance(synapse, Synapse)
        and isinstance(module.norm if isinstance(module, Soma) else module, BatchNorm)
        and synapse.weight.requires_grad
    ]


def orthogonal(matrices: Tensor) -> Tensor:
    """`U V^T` of each matrix `U S V^T`, roughly: what becomes of S lies around 1.

    Five rounds of `X <- a X + b (X X^T) X + c (X X^T)^2 X`, which all products are: no
    decomposition.
    """
    if matrices.shape[-2] > matrices.shape[-1]:
        return orthogonal(matrices.mT).mT
    a, b, c = _QUINTIC
    x = matrices / _length(matrices)
    if x.is_cuda:
        x = x.bfloat16()
    for _ in range(_ROUNDS):
        square = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x.to(matrices.dtype)


class Muon(torch.optim.SGD):
    """SGD with momentum, but weights W of groups with `turns` keep their length and turn.

    `M <- mu M + G`, `D = G + mu M` with Nesterov's momentum, else `D = M`, and with
    `O = orthogonal(D)`

        W <- W - lr O |W| / |O|, brought back to its length

    so `lr` is about the angle of a step. W has a row for each output.
    """

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Turn what turns; then SGD moves the rest, which alone has gradients left."""
        for group in self.param_groups:
            if group["turns"]:
                given = [p for p in group["params"] if p.grad is not None]
                for _, alike in groupby(sorted(given, key=_shape), key=_shape):
                    self._turn(list(alike), group)
        super().step(closure)

    def _turn(self, weights: list[nn.Parameter], group: dict[str, Any]) -> None:
        """One step of weights of one shape."""
        buffers = [self.state[weight]["momentum_buffer"] for weight in weights]
        before, momentum = _rows(weights), _rows(buffers)
        gradient = _rows([weight.grad for weight in weights if weight.grad is not None])
        moved = group["momentum"] * momentum + gradient
        direction = gradient + group["momentum"] * moved if group["nesterov"] else moved
        turn, length = orthogonal(direction), _length(before)
        after = before - group["lr"] * turn * (length / _length(turn))
        after *= length / _length(after)
        spoilt = getattr(self, "found_inf", None)
        if spoilt is not None:
            moved = torch.where(spoilt > 0, momentum, moved)
            after = torch.where(spoilt > 0, before, after)
        for weight, buffer, now, pace in zip(weights, buffers, after, moved, strict=True):
            weight.copy_(now.view(weight.shape))
            buffer.copy_(pace.view(weight.shape))
            weight.grad = None


def _shape(weight: nn.Parameter) -> tuple[int, ...]:
    return tuple(weight.shape)


def _rows(tensors: list[Tensor] | list[nn.Parameter]) -> Tensor:
    """One matrix of each, a row for every output."""
    return torch.stack([tensor.flatten(1) for tensor in tensors])


def _length(matrices: Tensor) -> Tensor:
    """Frobenius norms, above zero."""
    length: Tensor = torch.linalg.vector_norm(matrices, dim=(-2, -1), keepdim=True)
    return length.clamp(min=1e-30)
