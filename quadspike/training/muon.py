"""Muon for spiking networks: normalised weights turn, all of their directions alike.

PyTorch has a Muon too. It takes matrices only, reads the learning rate on the host, where a
captured step would keep the first for good, and knows no `found_inf`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from quadspike.models.synapses import Synapse, pairs
from quadspike.norms import BatchNorm
from quadspike.soma import Soma

_QUINTIC = 3.4445, -4.7750, 2.0315
_ROUNDS = 5
_SMALL = 128
"""Matrices of up to so many rows go together, above it those between two powers of 2."""


def normalised_weights(model: nn.Module) -> list[Tensor]:
    """The weights of every synapse right before a normalisation, which divides out their length.

    >>> from quadspike import create_model
    >>> len(normalised_weights(create_model("resnet19")))
    21
    """
    found = pairs(model, (Soma, BatchNorm))
    weights = [
        synapse.weight
        for _, synapse, module in found
        if isinstance(synapse, Synapse)
        and isinstance(module.norm if isinstance(module, Soma) else module, BatchNorm)
        and synapse.weight.requires_grad
    ]
    return list(dict.fromkeys(weights))  # one synapse may feed several somas


def orthogonal(matrices: Tensor) -> Tensor:
    """`U V^T` of each matrix `U S V^T`, roughly: S becomes about 1, or stays 0.

    Five rounds of `X <- a X + b (X X^T) X + c (X X^T)^2 X`: products, no decomposition.
    """
    a, b, c = _QUINTIC
    x = _shortened(matrices)
    for _ in range(_ROUNDS):
        square = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x


class Muon(torch.optim.SGD):
    """SGD with momentum, but weights W of groups with `turns` keep their length and turn.

    `M <- mu M + G`, `D = G + mu M` with Nesterov's momentum, else `D = M`, and with
    `O = orthogonal(D)`

        W <- W - lr O |W| / |O|, brought back to its length

    so `lr` is about the angle of a step. W has a row for each output. It stays where G is zero
    throughout, and a W of zeros stays so. Where `found_inf` is not zero nothing changes, as with
    SGD. `make_optimizer` makes the groups and M.
    """

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Turn what turns; then SGD moves the rest, which alone has gradients left."""
        for group in self.param_groups:
            weights = [p for p in group["params"] if group["turns"] and p.grad is not None]
            if weights:
                self._turn(weights, group)
        super().step()

    def _turn(self, weights: list[Tensor], group: dict[str, Any]) -> None:
        gradients = [weight.grad for weight in weights if weight.grad is not None]
        momenta = [self.state[weight]["momentum_buffer"] for weight in weights]
        spoilt, mu = getattr(self, "found_inf", weights[0].new_zeros(())), group["momentum"]
        for gradient in gradients:
            gradient.masked_fill_(spoilt > 0, 0)
        one = torch.ones_like(spoilt, dtype=weights[0].dtype)
        torch._foreach_mul_(momenta, torch.where(spoilt > 0, one, mu * one))
        torch._foreach_add_(momenta, gradients)
        if group["nesterov"]:
            momenta = list(torch._foreach_add(gradients, momenta, alpha=mu))
        moves, lengths = _norms(gradients) > 0, _norms(weights)
        rates = group["lr"] * lengths * moves
        for weight, rate, turn in zip(weights, rates, _directions(momenta), strict=True):
            weight.addcmul_(turn.to(weight.dtype), rate, value=-1)
            weight.grad = None
        back = torch.where(moves, lengths / _norms(weights), 1).nan_to_num(1)
        for weight, ratio in zip(weights, back, strict=True):
            weight.mul_(ratio)


def _directions(weights: list[Tensor]) -> list[Tensor]:
    """`orthogonal` of each, of length 1. Like ones together, filled up with zeros."""
    matrices = [_matrix(weight) for weight in weights]
    buckets: dict[int, list[int]] = {}
    for index, matrix in enumerate(matrices):
        buckets.setdefault((max(_SMALL, len(matrix)) - 1).bit_length(), []).append(index)
    dtype = weights[0].dtype
    if weights[0].is_cuda and dtype == torch.float32:
        dtype = torch.bfloat16
    found: dict[int, Tensor] = {}
    for indices in buckets.values():
        rows, columns = (max(matrices[index].shape[side] for index in indices) for side in (0, 1))
        batch = weights[0].new_zeros(len(indices), rows, columns, dtype=dtype)
        for place, index in enumerate(indices):
            _corner(batch[place], matrices[index]).copy_(matrices[index])
        turned = _shortened(orthogonal(batch))
        for place, index in enumerate(indices):
            found[index] = _like(_corner(turned[place], matrices[index]), weights[index])
    return [found[index] for index in range(len(weights))]


def _matrix(weight: Tensor) -> Tensor:
    """A row for each output, or a column where there are more outputs than inputs.

    Channels last, as the weights of convolutions lie on a GPU.
    """
    matrix = weight.movedim(1, -1).flatten(1)
    return matrix.mT if len(matrix) > matrix.shape[1] else matrix


def _like(matrix: Tensor, weight: Tensor) -> Tensor:
    """`_matrix` undone."""
    moved = weight.movedim(1, -1)
    upright = matrix.mT if len(matrix) != len(weight) else matrix
    return upright.reshape(moved.shape).movedim(-1, 1)


def _corner(padded: Tensor, matrix: Tensor) -> Tensor:
    return padded[: matrix.shape[0], : matrix.shape[1]]


def _shortened(matrices: Tensor) -> Tensor:
    """Each of length 1, or 0 if it was; squares of small numbers would vanish in float32."""
    lengths: Tensor = torch.linalg.vector_norm(
        matrices, dim=(-2, -1), keepdim=True, dtype=torch.float64
    )
    shortening = 1 / lengths.clamp(min=1e-30)
    return matrices * shortening.to(matrices.dtype)


def _norms(tensors: list[Tensor]) -> Tensor:
    return torch.stack(torch._foreach_norm(tensors))
