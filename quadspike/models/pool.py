"""Pooling as torch's, by `quadspike::pool` where that is the faster one."""

from __future__ import annotations

from torch import Tensor, nn

from quadspike.ops.pool import Window, pool, runs


class AveragePool(nn.AvgPool2d):
    """`nn.AvgPool2d`, the same numbers."""

    def forward(self, x: Tensor) -> Tensor:
        window = Window("mean", _pair(self.kernel_size), _pair(self.stride), _pair(self.padding))
        counted = self.count_include_pad or not any(window.padding)
        plain = counted and not self.ceil_mode and self.divisor_override is None
        out: Tensor = pool(x, *window)[0] if plain and runs(x, window) else super().forward(x)
        return out


class MaxPool(nn.MaxPool2d):
    """`nn.MaxPool2d`, the same numbers."""

    def forward(self, x: Tensor) -> Tensor:
        window = Window("max", _pair(self.kernel_size), _pair(self.stride), _pair(self.padding))
        plain = _pair(self.dilation) == [1, 1] and not self.return_indices and not self.ceil_mode
        out: Tensor = pool(x, *window)[0] if plain and runs(x, window) else super().forward(x)
        return out


def _pair(value: int | tuple[int, ...]) -> list[int]:
    return [value, value] if isinstance(value, int) else list(value)
