"""The folder of records: which there are, whole or not."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from quadspike.atomic import alone_in, write_text
from quadspike.errors import QuadspikeError

Kind = Literal["runs", "compare"]
Files = dict[str, str]
"""Texts by the name of their file."""

SUMS = "SHA256SUMS"
FASTEST = "fastest"
"""No group: that name stands for the list of the fast record."""
LARGEST = 200 * 1024
"""Bytes of a record: a repository is cloned by everyone."""
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)?")


@dataclass(frozen=True)
class Store:
    """`runs/NAME` and `compare/NAME` under `root`; a name may be in a group: `GROUP/NAME`."""

    root: Path = Path("records")

    def folder(self, kind: Kind, name: str) -> Path:
        """Where the record of that name is, or would be."""
        if not _NAME.fullmatch(name):
            raise QuadspikeError(
                f"a record cannot be called {name!r}; use small letters, digits, '.', '_' and "
                "'-', with a group before a '/' if it is in one, such as window/mean-seed0"
            )
        if name.partition("/")[0] == FASTEST:
            raise QuadspikeError(
                f"a record cannot be called {name!r}: {FASTEST} is the list of the fast record; "
                "choose another name"
            )
        return self.root / kind / name

    def check(self) -> None:
        """Refuse a folder that is not there."""
        if not self.root.is_dir():
            raise QuadspikeError(
                f"there is no folder {self.root}; name that of the records by --records"
            )

    def names(self, kind: Kind) -> list[str]:
        """All records of a kind; a folder with any file in it is one, but for hidden ones."""
        top = self.root / kind
        files = (path.relative_to(top) for path in top.rglob("*") if not path.is_dir())
        seen = (file for file in files if not any(part.startswith(".") for part in file.parts))
        return sorted({file.parent.as_posix() for file in seen})

    def read(self, kind: Kind, name: str) -> Files:
        """The files of a record, if they are those that were written."""
        folder = self.folder(kind, name)
        try:
            contents = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
            files = {name: content.decode() for name, content in contents.items()}
        except (OSError, UnicodeDecodeError) as error:
            raise QuadspikeError(f"cannot be read: {error}") from None
        stated = files.pop(SUMS, None)
        if stated is None:
            raise QuadspikeError(f"has no {SUMS}")
        if stated != sums(files):
            raise QuadspikeError(f"its files are not those of its {SUMS}: {_unlike(files, stated)}")
        return files

    def write(self, kind: Kind, name: str, files: Files) -> bool:
        """Keep a record; False where just that was there already, another one is not replaced."""
        folder = self.folder(kind, name)
        size = sum(len(text.encode()) for text in files.values())
        if size > LARGEST:
            raise QuadspikeError(
                f"a record of {size:,} bytes is too large for a repository, which takes {LARGEST:,}"
            )
        with alone_in(folder.parent):
            if (folder.parent / SUMS).exists():
                raise QuadspikeError(
                    f"{folder.parent} is a record, and cannot be a group too; choose another --name"
                )
            if folder.exists():
                try:
                    if self.read(kind, name) == files:
                        return False
                except QuadspikeError:
                    pass
                raise QuadspikeError(
                    f"{folder} holds another record; choose another --name, or remove it if it is "
                    "wrong"
                )
            partial = folder.with_name(f".{folder.name}.partial")
            shutil.rmtree(partial, ignore_errors=True)
            try:
                for file, text in {**files, SUMS: sums(files)}.items():
                    write_text(partial / file, text)
                partial.rename(folder)
            except OSError as error:
                raise QuadspikeError(f"cannot write {folder}: {error.strerror}") from None
        return True


def sums(files: Mapping[str, str]) -> str:
    """As `sha256sum` prints and checks it."""
    return "".join(
        f"{hashlib.sha256(files[name].encode()).hexdigest()}  {name}\n" for name in sorted(files)
    )


def _unlike(files: Files, stated: str) -> str:
    ours, theirs = set(sums(files).splitlines()), set(stated.splitlines())
    names = {line.partition("  ")[2] for line in ours ^ theirs}
    return ", ".join(sorted(filter(None, names))) or "its own lines"
