"""Mutated files: nothing but a QuadspikeError may come of them, or a sound recording.

`QUADSPIKE_FUZZ_CASES` sets the number of cases; run as a script, this prints a line a format.
"""

from __future__ import annotations

import io
import os
import random
import re
import time
import zipfile
from collections import Counter
from typing import NamedTuple

import numpy as np
import pytest

from quadspike import QuadspikeError
from quadspike.data.events import files
from quadspike.data.events.aedat import format_aedat, parse_aedat
from quadspike.data.events.files import Source, archive_members
from quadspike.data.events.form import Events
from quadspike.data.events.nmnist import parse_nmnist

CASES = int(os.environ.get("QUADSPIKE_FUZZ_CASES", "10000"))


class Format(NamedTuple):
    parse: object
    record: int
    seeds: list[bytes]


def recording(size, count, seed):
    source = np.random.default_rng(seed)
    fields = (source.integers(0, high, count) for high in (size, size, 2))
    return Events.of(np.sort(source.integers(0, 2**23, count)), *fields, width=size, height=size)


def nmnist_bytes(events):
    t, x, y, p = (getattr(events, name).numpy().astype(np.int64) for name in "txyp")
    columns = (x, y, p << 7 | t >> 16, t >> 8 & 255, t & 255)
    return np.stack(columns, axis=1).astype(np.uint8).tobytes()


def aedat_seeds():
    whole = [format_aedat(recording(128, count, count), "seed") for count in (1, 7, 40)]
    bare = [b"#!AER-DAT2.0\r\n" + data.partition(b"Header\r\n")[2] for data in whole]
    return whole + bare


def parse_any_aedat(data, name, choice):
    backwards = ("error", "sort", "unwrap")[choice % 3]
    found = parse_aedat(data, name, backwards=backwards, camera=("upright", "sideways")[choice % 2])
    assert len(found) <= len(data) / 8
    return found


def parse_any_nmnist(data, name, choice):
    return parse_nmnist(data, name, backwards=("error", "sort")[choice % 2])


FORMATS = {
    "aedat": Format(parse_any_aedat, 8, aedat_seeds()),
    "nmnist": Format(
        parse_any_nmnist, 5, [nmnist_bytes(recording(34, count, count)) for count in (1, 7, 40)]
    ),
}


def length(data, source):
    """Some bytes, or whole records of either format, so that mutants get past the first check."""
    return source.choice((source.randint(1, 17), 40 * source.randint(1, 4))) if data else 0


def truncate(data, source):
    return data[: max(0, len(data) - length(data, source))]


def flip_bits(data, source):
    changed = bytearray(data)
    for _ in range(source.randint(1, 4)):
        changed[source.randrange(len(data))] ^= 1 << source.randrange(8)
    return bytes(changed)


def insert(data, source):
    place = source.randrange(len(data) + 1)
    return data[:place] + source.randbytes(length(data, source)) + data[place:]


def duplicate(data, source):
    start = source.randrange(len(data))
    place = source.randrange(len(data) + 1)
    return data[:place] + data[start : start + length(data, source)] + data[place:]


def remove(data, source):
    start = source.randrange(len(data))
    return data[:start] + data[start + length(data, source) :]


def swap(data, source):
    size, unit = 40, source.choice((5, 8))
    last = max(1, (len(data) - size) // unit)
    first, second = (source.randrange(last) * unit for _ in range(2))
    changed = bytearray(data)
    changed[first : first + size], changed[second : second + size] = (
        data[second : second + size],
        data[first : first + size],
    )
    return bytes(changed)


TOKENS = [
    b"#", b"\r\n", b"\n", b"\r", b"#\r\n", b"#!AER-DAT", b"#!AER-DAT3.1\r\n", b"\0", b"\xff" * 4,
    b"#End Of ASCII Header\r\n", b"# quadspike camera: sideways\r\n", b"# quadspike camera: \r\n",
    b"\x00\x00\x80\x00\x00\x00\x00\x00", b"\x80\x00\x00\x00\xff\xff\xff\xff", b"\0\xf0\0\0\0",
]  # fmt: skip


def splice_token(data, source):
    place = source.randrange(min(len(data), 400) + 1)
    kept = source.randint(0, 12)
    return data[:place] + source.choice(TOKENS) + data[place + kept :]


def noise(data, source):
    keep = source.choice([0, 12, 14, len(data) // 2])
    return data[:keep] + source.randbytes(source.randrange(200))


MUTATIONS = (truncate, flip_bits, insert, duplicate, remove, swap, splice_token, noise)


def kind(error):
    """The message without its numbers and quotations: one kind of refusal."""
    text = str(error).removeprefix("fuzz: ")
    return " ".join(re.sub(r"b?'[^']*'|b?\"[^\"]*\"|0x[0-9a-f]+|[0-9]+", "_", text).split()[:6])


def fuzz(name, cases, seed=0):
    """What came of the cases, by kind, and the seconds of the slowest."""
    form = FORMATS[name]
    outcomes = Counter()
    slowest = 0.0
    for case in range(cases):
        source = random.Random(seed << 40 | case)
        data = source.choice(form.seeds)
        for _ in range(source.choice((1, 1, 1, 2, 3))):
            data = source.choice(MUTATIONS)(data, source) or b"\0"
        begun = time.perf_counter()
        try:
            events = form.parse(data, "fuzz", source.randrange(6))
        except QuadspikeError as error:
            outcomes[kind(error) if "fuzz" in str(error) else "a message without a name"] += 1
        except Exception as error:
            raise AssertionError(f"case {case} of seed {seed}: {error!r} from {data!r}") from error
        else:
            assert 0 < len(events) <= len(data) / form.record, f"case {case}"
            events.check(f"case {case}")
            outcomes["read"] += 1
        slowest = max(slowest, time.perf_counter() - begun)
    return outcomes, slowest


@pytest.mark.parametrize("name", FORMATS)
def test_mutated_files_are_read_or_refused(name):
    outcomes, slowest = fuzz(name, CASES)
    assert sum(outcomes.values()) == CASES
    assert slowest < 10
    assert "a message without a name" not in outcomes
    # The mutations reach deep: some files are still sound, and no one kind is all there is.
    assert outcomes["read"] > CASES / 100
    assert len(outcomes) >= 4
    assert outcomes.most_common(1)[0][1] < 0.9 * CASES


def archive() -> bytes:
    stream = io.BytesIO()
    kinds = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
    with zipfile.ZipFile(stream, "w") as packed:
        for index, kind in enumerate(kinds):
            packed.writestr(f"cat/cifar10_cat_{index}.aedat", b"recording " * 9, kind)
    return stream.getvalue()


def test_mutated_archives_are_read_or_refused(tmp_path):
    source, whole, path = random.Random(0), archive(), tmp_path / "cat.zip"
    read = 0
    for _ in range(CASES):
        path.write_bytes(source.choice(MUTATIONS)(whole, source))
        files._archive.cache_clear()
        try:
            for member in archive_members(path):
                read += len(Source(path, member).read()) > 0
        except QuadspikeError:
            continue
    assert read > 0


def test_an_archive_that_would_fill_the_memory_is_refused_unread(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MOST_BYTES", 10)
    (tmp_path / "cat.zip").write_bytes(archive())
    with pytest.raises(QuadspikeError, match="unpacks to 90 bytes"):
        Source(tmp_path / "cat.zip", "cat/cifar10_cat_3.aedat").read()


if __name__ == "__main__":
    for name in FORMATS:
        begun = time.perf_counter()
        outcomes, slowest = fuzz(name, CASES, seed=1)
        seconds = time.perf_counter() - begun
        print(f"{name}: {CASES} cases, {seconds:.0f} s, slowest {slowest * 1e3:.1f} ms", flush=True)
        for what, count in outcomes.most_common():
            print(f"  {count:8d}  {what}", flush=True)
