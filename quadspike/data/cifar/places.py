"""Where CIFAR lies under a folder, and its files' bytes, read from archives as they are."""

from __future__ import annotations

import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from quadspike.data.cifar.layouts import Layout, Part
from quadspike.errors import QuadspikeError


@dataclass(frozen=True)
class Place:
    """A layout's files in a folder, or in an archive."""

    layout: Layout
    path: Path

    @property
    def archived(self) -> bool:
        return self.path.is_file()

    @property
    def missing(self) -> list[str]:
        """Files that are not there; an archive is taken to hold them all until it is read."""
        if self.archived:
            return []
        return [p.name for p in self.layout.parts if not (self.path / p.name).is_file()]

    def read(self) -> Iterator[tuple[Part, str, bytes]]:
        """Every part, where it is, and its bytes; an archive's in the order it has them."""
        if self.archived:
            yield from _from_archive(self.path, self.layout)
            return
        for part in self.layout.parts:
            file = self.path / part.name
            try:
                _check_size(part, str(file), file.stat().st_size)
                raw = file.read_bytes()
            except OSError as error:
                raise QuadspikeError(f"{file}: cannot be read: {error.strerror}") from error
            yield part, str(file), raw


def begun(layouts: tuple[Layout, ...], root: Path) -> list[Place]:
    """Where any of the files are: folders before archives, the binary form before the pickles."""
    folders = [Place(each, root / each.folder) for each in layouts]
    loose = [Place(each, root) for each in layouts]
    archives = [Place(each, root / each.archive) for each in layouts]
    places = [place for place in folders + loose if place.path.is_dir()]
    places += [place for place in archives if place.archived]
    return [place for place in places if len(place.missing) < len(place.layout.parts)]


def find(layouts: tuple[Layout, ...], root: Path) -> Place:
    """The first place that has all files."""
    places = begun(layouts, root)
    for place in places:
        if not place.missing:
            return place
    lacking = [f"{place.path} lacks {', '.join(place.missing)}" for place in places]
    first = layouts[0]
    raise QuadspikeError(
        f"no {first.title} under {root}: "
        + "".join(f"{text}; " for text in lacking)
        + "say where it is by --data FOLDER, fetch it by `quadspike data download "
        f"{first.title.lower().replace('-', '')}` (download=True in Python), or put "
        f"{first.archive} there ({first.size:,} bytes, MD5 {first.md5}, from {first.url}); "
        f"{', '.join(each.archive for each in layouts[1:])} and the "
        f"unpacked {' or '.join(each.folder for each in layouts)} will do as well"
    )


def _check_size(part: Part, where: str, size: int) -> None:
    if size > part.most_bytes:
        raise QuadspikeError(
            f"{where}: {size:,} bytes, more than its {part.images:,} images take; get it again"
        )


def _from_archive(path: Path, layout: Layout) -> Iterator[tuple[Part, str, bytes]]:
    wanted = {f"{layout.folder}/{part.name}": part for part in layout.parts}
    try:
        with tarfile.open(path, "r|*") as archive:
            for member in archive:
                name = member.name.removeprefix("./")
                # A link or a folder of that name is not the file.
                file = archive.extractfile(member) if name in wanted and member.isfile() else None
                if file:
                    part = wanted.pop(name)
                    _check_size(part, f"{path}:{member.name}", member.size)
                    yield part, f"{path}:{member.name}", file.read()
                if not wanted:
                    return
    except (tarfile.TarError, zlib.error, EOFError, OSError) as error:
        raise QuadspikeError(
            f"{path}: the archive is broken ({error}); delete it and get it again"
        ) from error
    raise QuadspikeError(
        f"{path}: the archive holds no {', '.join(wanted)}; delete it and get it again"
    )
