"""Recordings in zip archives, mutated ones too: read or refused, never anything else."""

from __future__ import annotations

import io
import random
import zipfile

from quadspike import QuadspikeError
from quadspike.data.events import files
from quadspike.data.events.files import Source, archive_members

CASES = 1_000


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
        path.write_bytes(mutated(whole, source))
        files._archive.cache_clear()
        try:
            for member in archive_members(path):
                read += len(Source(path, member).read()) > 0
        except QuadspikeError:
            continue
    assert read > 0


def test_an_archive_replaced_by_another_is_read_anew(tmp_path):
    path = tmp_path / "cat.zip"
    for content in (b"first", b"second, longer"):
        with zipfile.ZipFile(tmp_path / "new.zip", "w") as packed:
            packed.writestr("a.aedat", content)
        (tmp_path / "new.zip").replace(path)
        assert Source(path, "a.aedat").read() == content
