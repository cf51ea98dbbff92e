"""Randomness with one rule: every draw is a function of its counters.

Philox4x32-10 written in tensor arithmetic: the same bits on every device, inside a graph
or out, with no generator state to lose. Inside a network a draw is a function of
(seed, step, layer); for data, of (seed, epoch, sample, purpose).
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

import torch
from torch import Tensor

_M0, _M1 = 0xD2511F53, 0xCD9E8D57
_W0, _W1 = 0x9E3779B9, 0xBB67AE85
_MASK = 0xFFFFFFFF


class Key(NamedTuple):
    """What every draw inside one forward call depends on; tensors may sit on the device."""

    seed: int | Tensor
    step: int | Tensor


def fresh_key() -> Key:
    """A key from torch's own generator, for a plain loop under `torch.manual_seed`."""
    return Key(int(torch.randint(2**31 - 1, ()).item()), 0)


def purpose(name: str) -> int:
    """A stable 32-bit number for a name, such as a layer's."""
    return zlib.crc32(name.encode())


def philox(counter: tuple[Tensor, Tensor, Tensor, Tensor], key: tuple[Tensor, Tensor]) -> Tensor:
    """Four 32-bit words per counter, `[..., 4]` as int64; ten rounds."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        high0, low0 = _multiply(c0, _M0)
        high1, low1 = _multiply(c2, _M1)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + _W0) & _MASK, (k1 + _W1) & _MASK
    return torch.stack(torch.broadcast_tensors(c0, c1, c2, c3), dim=-1)


def _multiply(x: Tensor, constant: int) -> tuple[Tensor, Tensor]:
    """High and low words of a 32 x 32 bit product, without leaving int64."""
    low16, high16 = x & 0xFFFF, x >> 16
    a, b = low16 * constant, high16 * constant
    total = (a >> 16) + b
    return (total >> 16) & _MASK, ((total & 0xFFFF) << 16) | (a & 0xFFFF)


def uniform(
    shape: tuple[int, ...],
    key: Key,
    name: str,
    device: torch.device | str = "cpu",
) -> Tensor:
    """Uniform draws in [0, 1) of `shape`, a function of (seed, step, name, place) alone.

    >>> key = Key(seed=1, step=7)
    >>> bool((uniform((3,), key, "a") == uniform((5,), key, "a")[:3]).all())
    True
    """
    size = 1
    for length in shape:
        size *= length
    place = torch.arange((size + 3) // 4, device=device)

    def word(value: int | Tensor, shift: int = 0) -> Tensor:
        return (torch.as_tensor(value, device=device, dtype=torch.int64) >> shift) & _MASK

    counter = (place, word(key.step), word(key.step, 32), word(purpose(name)))
    words = philox(counter, (word(key.seed), word(key.seed, 32)))
    return ((words >> 8).to(torch.float32) * 2**-24).flatten()[:size].view(shape)
