"""Mutated and oversized CIFAR files: read or refused, never anything else."""

from __future__ import annotations

import pickle
import random

import numpy as np
import pytest

from quadspike import QuadspikeError
from quadspike.data.cifar import load_cifar10
from quadspike.data.cifar.pickles import read_pickle

CASES = 10_000


def mutated(data: bytes, source: random.Random) -> bytes:
    """Some bytes flipped, cut, doubled or made noise."""
    out = bytearray(data)
    for _ in range(source.randint(1, 4)):
        place = source.randrange(len(out)) if out else 0
        match source.randrange(4):
            case 0 if out:
                out[place] ^= 1 << source.randrange(8)
            case 1:
                del out[place : place + source.randint(1, 60)]
            case 2:
                out[place:place] = source.randbytes(source.randint(1, 20))
            case _:
                out = out[: max(1, place)]
    return bytes(out)


def seeds() -> list[bytes]:
    images = np.arange(6 * 48, dtype=np.uint8).reshape(6, 48)
    content = {b"data": images, b"labels": [0, 1, 2, 3, 4, 5], b"batch_label": b"one of one"}
    return [pickle.dumps(content, protocol=protocol) for protocol in (0, 2, 4)]


SEEDS = seeds()


def test_mutated_pickles_are_read_or_refused():
    source, read = random.Random(0), 0
    for case in range(CASES):
        data = mutated(SEEDS[case % len(SEEDS)], source)
        try:
            read += isinstance(read_pickle(data, "batch"), dict)
        except QuadspikeError:
            continue
    assert 0 < read < CASES


def test_a_batch_larger_than_its_images_is_refused_unread(tmp_path):
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    for name in (*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"):
        with (folder / name).open("wb") as file:
            file.truncate(8 << 30)  # sparse: takes no room
    with pytest.raises(QuadspikeError, match=r"data_batch_1\.bin: 8,589,934,592 bytes, more than"):
        load_cifar10(tmp_path)
