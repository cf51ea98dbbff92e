"""The draws of `quadspike.draws` as the kernels make them: the same words for the same places."""

from __future__ import annotations

import triton
import triton.language as tl

from quadspike import draws

GOLDEN: tl.constexpr = tl.constexpr(draws.GOLDEN)
MIX0: tl.constexpr = tl.constexpr(draws.MIX0)
MIX1: tl.constexpr = tl.constexpr(draws.MIX1)
NEXT_WORD: tl.constexpr = tl.constexpr(draws.PLACES * draws.GOLDEN % 2**64)
EACH: tl.constexpr = tl.constexpr(draws.EACH)
BITS: tl.constexpr = tl.constexpr(draws.BITS)
LOW: tl.constexpr = tl.constexpr(2**draws.BITS - 1)
UNIT: tl.constexpr = tl.constexpr(2.0**-draws.BITS)


@triton.jit
def mixed(x):
    """SplitMix64's scrambling of 64 bits."""
    x = (x ^ (x >> 30)) * MIX0
    x = (x ^ (x >> 27)) * MIX1
    return x ^ (x >> 31)


@triton.jit
def first_word(stream, counter, SAMPLES: tl.constexpr):
    """What is mixed for the first place's first word; 0 where nothing is drawn."""
    if SAMPLES > 0:
        begin = tl.full((), 1, tl.int64) * counter
        word = mixed(tl.load(stream).to(tl.uint64)) + begin.to(tl.uint64) * GOLDEN
    else:
        word = 0
    return word


@triton.jit
def places_of(
    begin,
    offsets,
    block,
    channel,
    channels,
    places,
    SAMPLES: tl.constexpr,
    ROWS: tl.constexpr,
    LAST: tl.constexpr,
):
    """How much further a tile's places are: `GOLDEN` for each one in a contiguous `[B, C, ...]`."""
    if SAMPLES == 0:
        further = 0
    elif LAST:
        row = block * ROWS + tl.arange(0, ROWS)[:, None]
        down = (row // places).to(tl.int64) * ((channels - 1) * places) + row
        across = channel.to(tl.int64) * places
        further = down.to(tl.uint64) * GOLDEN + across.to(tl.uint64) * GOLDEN
    else:
        further = (begin + offsets).to(tl.uint64) * GOLDEN
    return further


@triton.jit
def with_share(constants, share):
    """The surrogate's constants with a draw in the last place."""
    given = ()
    for i in tl.static_range(len(constants) - 1):
        given = given + (constants[i],)
    return given + (share,)


@triton.jit
def slope_of(v, soft, word, t, place, equation, SAMPLES: tl.constexpr):
    """The surrogate's slope, its mean over the draws of step `t` if it draws."""
    if SAMPLES == 0:
        slope = equation.derivative(v, soft)
    else:
        WORDS: tl.constexpr = (SAMPLES + EACH - 1) // EACH
        word += (t * WORDS).to(tl.uint64) * NEXT_WORD
        slope = tl.zeros_like(v)
        for number in tl.static_range(WORDS):
            bits = mixed(place + word)
            word += NEXT_WORD
            for i in tl.static_range(EACH):
                if number * EACH + i < SAMPLES:
                    draw = (bits >> (i * BITS)).to(tl.uint32) & LOW
                    share = draw.to(tl.float32) * UNIT + 0.5 * UNIT
                    slope += equation.derivative(v, with_share(soft, share))
        slope *= 1.0 / SAMPLES
    return slope
