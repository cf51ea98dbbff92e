"""Several random draws for every place of a tensor: SplitMix64 over the places.

A word of 64 bits is `mixed(counter GOLDEN + mixed(start))`, a few times less work than Philox,
and holds three draws. `start` is a number for (seed, step, layer); the counter has the place in
the whole batch in its low 40 bits and the number of the word above them. The kernels compute the
same words.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from quadspike.randomness import Key, purpose, scalar

GOLDEN, MIX0, MIX1 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
PLACES = 2**40
"""Counters of a word's number."""
BITS = 21
"""Of a draw."""
EACH = 64 // BITS
"""Draws of a word."""
_GOLDEN, _MIX0, _MIX1 = (word - 2**64 for word in (GOLDEN, MIX0, MIX1))  # as int64 holds them


class Draws(NamedTuple):
    """What the draws of one call of a layer depend on.

    >>> x = torch.zeros(4, 3)
    >>> whole = Draws.of(Key(seed=1, step=7), "a", samples=2, like=x)
    >>> part = Draws.of(Key(1, 7, first=2), "a", samples=2, like=x[2:])
    >>> bool((part.word(x[2:], number=0) == whole.word(x, number=0)[2:]).all())
    True
    """

    start: Tensor
    counter: int
    """Of the first place in the first word."""
    samples: int
    """Draws for every place and time step."""

    @classmethod
    def of(cls, key: Key, name: str, samples: int, like: Tensor) -> Draws:
        """Those of layer `name` for samples `[B, ...]`, the first of them `key.first`."""
        start = scalar(key.seed, like.device) * _GOLDEN + scalar(key.step, like.device)
        first = key.first * math.prod(like.shape[1:])
        return cls(start * _GOLDEN + purpose(name), first, samples)

    def at(self, step: int) -> Draws:
        """Those of a time step."""
        return self._replace(counter=self.counter + step * words_of(self.samples) * PLACES)

    def word(self, like: Tensor, number: int) -> Tensor:
        """64 random bits for every place, as int64, in the memory layout of `like`."""
        begin = self.counter + number * PLACES
        place = torch.arange(begin, begin + like.numel(), device=like.device).view(like.shape)
        place = torch.empty_like(like, dtype=torch.int64).copy_(place)
        return mixed(place * _GOLDEN + mixed(self.start))


def words_of(samples: int) -> int:
    """Words that hold `samples` draws."""
    return -(-samples // EACH)


def mixed(x: Tensor) -> Tensor:
    """SplitMix64's scrambling of 64 bits."""
    x = (x ^ (x >> 30) & (2**34 - 1)) * _MIX0
    x = (x ^ (x >> 27) & (2**37 - 1)) * _MIX1
    return x ^ (x >> 31) & (2**33 - 1)


def share(word: Tensor, which: int, dtype: torch.dtype) -> Tensor:
    """One of a word's draws, uniform in (0, 1); float32 holds it without rounding."""
    whole = (word >> which * BITS & (2**BITS - 1)).to(dtype)
    draw: Tensor = (whole + 0.5) * 2.0**-BITS
    return draw
