"""One split of a data set, held in memory as bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from quadspike.errors import QuadspikeError


@dataclass(frozen=True, eq=False)
class Split:
    """Inputs as uint8, images `[N, C, H, W]` or clips `[N, T, C, H, W]`, and labels `[N]`.

    A byte stands for `byte / levels`: of full brightness, or of events. Images have 255 levels;
    clips say theirs: 1 for the counts of `to_frames`.

    >>> split = Split("toy", torch.zeros(4, 1, 2, 2, dtype=torch.uint8), torch.arange(4) % 2,
    ...               ("a", "b"))
    >>> len(split), split.subset([1, 3]).labels.tolist()
    (4, [1, 1])
    """

    name: str
    inputs: Tensor
    labels: Tensor
    classes: tuple[str, ...]
    levels: int = 0

    def __post_init__(self) -> None:
        for part, given in (("inputs", self.inputs), ("labels", self.labels)):
            if not isinstance(given, Tensor):
                raise QuadspikeError(
                    f"{self.name}: {part} must be a tensor, got {type(given).__name__}; "
                    "torch.as_tensor makes one of it"
                )
        if not isinstance(self.classes, Sequence):
            raise QuadspikeError(
                f"{self.name}: classes must be their names in order, got {self.classes!r}"
            )
        if self.inputs.dtype != torch.uint8 or self.inputs.ndim not in (4, 5):
            raise QuadspikeError(
                f"{self.name}: inputs must be uint8 [N, C, H, W] or [N, T, C, H, W], "
                f"got {self.inputs.dtype} {tuple(self.inputs.shape)}"
            )
        if self.labels.shape != self.inputs.shape[:1] or self.labels.dtype != torch.int64:
            raise QuadspikeError(
                f"{self.name}: labels must be int64 [{len(self.inputs)}], "
                f"got {self.labels.dtype} {tuple(self.labels.shape)}"
            )
        if len(self) and not 0 <= int(self.labels.min()) <= int(self.labels.max()) < self.count:
            raise QuadspikeError(
                f"{self.name}: labels must lie in 0..{self.count - 1}, "
                f"got {int(self.labels.min())}..{int(self.labels.max())}"
            )

        if not self.levels:
            if self.inputs.ndim == 5:
                raise QuadspikeError(
                    f"{self.name}: say how many of its bytes' levels make one event, or full "
                    "brightness: levels=1 for the counts of to_frames, levels=255 for brightness"
                )
            object.__setattr__(self, "levels", 255)

    def __len__(self) -> int:
        return len(self.inputs)

    @property
    def count(self) -> int:
        """The number of classes."""
        return len(self.classes)

    def to(self, device: torch.device | str) -> Split:
        return replace(self, inputs=self.inputs.to(device), labels=self.labels.to(device))

    def subset(self, indices: Tensor | Sequence[int]) -> Split:
        """Those samples, in that order."""
        place = torch.as_tensor(indices, device=self.inputs.device)
        return replace(self, inputs=self.inputs[place], labels=self.labels[place])

    def parted(self, test: Tensor) -> tuple[Split, Split]:
        """The samples to train on, and those that the mask `test` names, to test on."""
        parts = (("train", ~test), ("test", test))
        train, held = (replace(self.subset(one), name=f"{self.name}/{part}") for part, one in parts)
        return train, held
