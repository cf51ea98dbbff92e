"""Randomness with one rule: every draw is a function of its counters.

Philox4x32-10 written in tensor arithmetic: the same bits on every device, inside a graph
or out, with no generator state to lose. Inside a network a draw is a function of
(seed, step, layer): `of_batch`; for data, of (seed, epoch, sample, purpose):
`per_sample`.
"""

from __future__ import annotations

import math
import zlib
from typing import NamedTuple

import torch
from torch import Tensor

from quadspike.constant import constant
from quadspike.errors import QuadspikeError

_M0, _M1 = 0xD2511F53, 0xCD9E8D57
_W0, _W1 = 0x9E3779B9, 0xBB67AE85
_MASK = 0xFFFFFFFF


class Key(NamedTuple):
    """What every draw inside one forward call depends on; tensors may sit on the device.

    `first` is the place of the call's first sample in the step's batch, where workers or
    passes share one: the same samples then meet the same draws however the batch is shared.
    """

    seed: int | Tensor
    step: int | Tensor
    first: int = 0


def fresh_key() -> Key:
    """A key from torch's own generator, for a plain loop under `torch.manual_seed`."""
    if torch.cuda.is_available() and torch.cuda.is_current_stream_capturing():
        raise QuadspikeError(
            "a CUDA graph would repeat the same random draws for ever; give "
            "model(x, key=Key(seed, step)) with the step on the device"
        )
    return Key(int(torch.randint(2**31 - 1, ()).item()), 0)


@constant
def purpose(name: str) -> int:
    """A stable 32-bit number for a name, such as a layer's."""
    return zlib.crc32(name.encode())


def philox(counter: tuple[Tensor, ...], key: tuple[Tensor, Tensor]) -> Tensor:
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
    """High and low words of a 32 x 32 bit product; int64 wraps, so its bits are right."""
    product = x * constant
    return (product >> 32) & _MASK, product & _MASK


def of_batch(
    shape: tuple[int, ...], key: Key, name: str, device: torch.device | str = "cpu"
) -> Tensor:
    """Uniform draws in [0, 1) for samples `[B, ...]`, the first of them `key.first` in the batch.

    A sample's draws are a function of (seed, step, name) and its place in the whole batch.

    >>> whole = of_batch((4, 3), Key(seed=1, step=7), "a")
    >>> bool((of_batch((2, 3), Key(1, 7, first=2), "a") == whole[2:]).all())
    True
    """
    size, begin = math.prod(shape), key.first * math.prod(shape[1:])
    before = begin % 4  # a block of four places has one counter
    block = torch.arange(begin // 4, (begin + size + 3) // 4, device=device)
    name_word = scalar(purpose(name), device)
    words = philox((block, *_words(key.step, device), name_word), _words(key.seed, device))
    return _unit(words).flatten()[before : before + size].view(shape)


def per_sample(
    count: int, samples: Tensor, seed: int | Tensor, epoch: int | Tensor, name: str
) -> Tensor:
    """Uniform draws in [0, 1), `[samples, count]`, on the samples' device.

    Row i is a function of (seed, epoch, samples[i], name) alone, whatever the batch.

    >>> one = per_sample(3, torch.tensor([5]), seed=1, epoch=2, name="crop")
    >>> many = per_sample(3, torch.tensor([4, 5, 6]), seed=1, epoch=2, name="crop")
    >>> bool((one[0] == many[1]).all())
    True
    """
    device = samples.device
    block = torch.arange((count + 3) // 4, device=device)
    name_word = scalar(purpose(name), device)
    counter = (samples.long()[:, None], block[None, :], scalar(epoch, device), name_word)
    words = philox(counter, _words(seed, device))
    return _unit(words).flatten(1)[:, :count]


def permutation(
    length: int,
    seed: int,
    epoch: int,
    name: str = "shuffle",
    device: torch.device | str = "cpu",
) -> Tensor:
    """The order of `length` samples in an epoch, a function of (seed, epoch, name) alone."""
    keys = per_sample(2, torch.arange(length, device=device), seed, epoch, name).double()
    return torch.argsort(keys[:, 0] + keys[:, 1] * 2.0**-24, stable=True)


def _words(value: int | Tensor, device: torch.device | str) -> tuple[Tensor, Tensor]:
    """The low and high 32 bits of a number."""
    whole = scalar(value, device)
    return whole & _MASK, (whole >> 32) & _MASK


def scalar(value: int | Tensor, device: torch.device | str) -> Tensor:
    """A number as int64 on the device."""
    # Filled on the device: a copy from the host could not be captured in a CUDA graph.
    return value.long() if isinstance(value, Tensor) else torch.full((), value, device=device)


def _unit(words: Tensor) -> Tensor:
    """32-bit words as float32 in [0, 1)."""
    return (words >> 8).to(torch.float32) * 2**-24
