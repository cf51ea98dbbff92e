"""AutoAugment on a whole batch at once, every sample under its own sub-policy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from quadspike.data.augment.basic import pick
from quadspike.data.augment.operations import apply, apply_by_group
from quadspike.data.augment.policies import ENHANCED, OPERATIONS, POLICIES, SIGNED, magnitude
from quadspike.data.loader import Draw
from quadspike.errors import QuadspikeError, check_name


class Choice(NamedTuple):
    """For every sample its sub-policy `[B]`, and two operations and their amounts `[B, 2]`.

    An operation is its place in `OPERATIONS`, identity where it was not to be applied; the
    amount of a translation is a share of the image's size.
    """

    policy: Tensor
    operation: Tensor
    amount: Tensor


@dataclass(frozen=True)
class AutoAugment:
    """One of the policy's sub-policies per sample: two operations, each with its probability.

    Implementations differ; here, as in the paper, the sign of a shear, a translation and a
    rotation is random (the common CIFAR code rotates one way only); the four enhancement
    factors are 1 +- level with a random sign (the paper's code: 0.1 + 0.2 level, no sign);
    solarize thresholds run from 256 down to 0 (torchvision: from 255); every geometric
    operation samples the nearest pixel and fills with grey 128 (the common CIFAR code shears
    bicubically). A translation's level is a share of the image's size, up to 150/331.
    """

    policy: str = "cifar10"

    def __post_init__(self) -> None:
        check_name("AutoAugment policy", self.policy, POLICIES)

    def __call__(self, x: Tensor, draw: Draw) -> Tensor:
        if x.dtype != torch.uint8 or x.ndim != 4 or x.shape[1] != 3:
            raise QuadspikeError(
                "AutoAugment takes uint8 images [B, 3, H, W] before they are normalised, "
                f"got {x.dtype} {tuple(x.shape)}"
            )
        choice = self.choose(draw)
        change = apply_by_group if x.device.type == "cpu" else apply
        for step in range(2):
            x = change(x, choice.operation[:, step], choice.amount[:, step])
        return x

    def choose(self, draw: Draw) -> Choice:
        """What happens to every sample of a batch."""
        table = _table(self.policy, draw.samples.device)
        draws = draw.uniform(5, "autoaugment")
        policy = pick(draws[:, 0], len(POLICIES[self.policy]))
        applied = draws[:, 1:3] < table.probability[policy]
        sign = torch.where(draws[:, 3:5] < 0.5, -1.0, 1.0)
        return Choice(
            policy,
            torch.where(applied, table.operation[policy], OPERATIONS.index("identity")),
            table.offset[policy] + table.magnitude[policy] * sign ** table.signed[policy],
        )


class _Table(NamedTuple):
    """What the sub-policies say, `[sub-policies, 2]` each."""

    operation: Tensor
    probability: Tensor
    offset: Tensor
    magnitude: Tensor
    signed: Tensor


# Kept per device: a copy from the host could not be captured in a CUDA graph.
@cache
def _table(policy: str, device: torch.device) -> _Table:
    steps = [step for pair in POLICIES[policy] for step in pair]

    def column(values: list[float], dtype: torch.dtype = torch.float64) -> Tensor:
        return torch.tensor(values, dtype=dtype, device=device).view(-1, 2)

    return _Table(
        column([OPERATIONS.index(step.operation) for step in steps], torch.int64),
        column([step.probability for step in steps]),
        column([float(step.operation in ENHANCED) for step in steps]),
        column([magnitude(step.operation, step.level) for step in steps]),
        column([float(step.operation in SIGNED + ENHANCED) for step in steps]),
    )
