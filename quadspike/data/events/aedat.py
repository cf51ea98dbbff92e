"""AEDAT 2.0, the files of the DVS128 camera and of CIFAR10-DVS.

Header lines that begin with '#' and end with CR LF, the first `#!AER-DAT2.0`; then records of
eight bytes, big-endian: an address and a time in microseconds, 32 bits each. Of the address
bit 0 is 0 for ON and 1 for OFF, bits 1 to 7 count columns and bits 8 to 14 rows; bit 15 or
bit 31 marks a special event (a pulse on the camera's input pin), which has no pixel.

Where the header ends: after the line `#End Of ASCII Header` where jAER wrote one, else before
the first byte that does not begin a whole line. Data cannot be taken for a line: the first
byte of a DVS128 record is 0x00 or 0x80, never '#' (0x23), since bits 16 to 30 of an address
are zero. A file that breaks that rule is of another camera and is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from quadspike.atomic import write_atomic
from quadspike.data.events.files import read_bytes
from quadspike.data.events.form import Events
from quadspike.errors import QuadspikeError, check_name

SENSOR = 128
"""Pixels of the camera along a side."""
CAMERAS = ("upright", "sideways")
BACKWARDS = ("error", "sort", "unwrap")

_VERSION = b"#!AER-DAT2.0\r\n"
_LAST_LINE = b"#End Of ASCII Header\r\n"
_CAMERA_LINE = "# quadspike camera: "
# Latin-1 letters are let through: jAER writes the names of users and computers as they are.
_LINES = re.compile(rb"(?:#[\t\x20-\x7e\x80-\xff]*\r\n)+")
_SPECIAL = np.uint32(0x80008000)
_FOREIGN = np.uint32(0x7FFF0000)
_RECORD = 8
_WRAP = 1 << 32


def read_aedat(path: str | Path, *, backwards: str = "error", camera: str = "upright") -> Events:
    """The events of an AEDAT 2.0 file; special events are dropped.

    `backwards` says what to do where time falls: "error" refuses, naming the place; "sort"
    puts the events in the order of time; "unwrap" takes the fall for a clock that began
    anew and goes on from the last time. A fall of more than half of the 32-bit range is the
    clock wrapping around (every 71.6 minutes) and is always followed.

    `camera` is how the camera stood where the file does not say so itself: "upright", or
    "sideways" as for CIFAR10-DVS.
    """
    return parse_aedat(read_bytes(path), str(path), backwards=backwards, camera=camera)


def parse_aedat(
    data: bytes, name: str, *, backwards: str = "error", camera: str = "upright"
) -> Events:
    """As `read_aedat`, from bytes; `name` is what messages call them."""
    check_name("way with time running backwards", backwards, BACKWARDS)
    check_name("camera", camera, CAMERAS)
    start = _header_end(data, name)
    if (len(data) - start) % _RECORD:
        raise QuadspikeError(
            f"{name}: cut short: {len(data) - start} bytes of records after byte {start}, "
            f"not a multiple of {_RECORD}; fetch the file anew"
        )
    words = np.frombuffer(data, ">u4", offset=start).astype(np.uint32)
    address, time = words[0::2], words[1::2]
    seen = np.bitwise_or.reduce(address, initial=0)
    if seen & _FOREIGN:
        place = int(np.flatnonzero(address & _FOREIGN)[0])
        raise QuadspikeError(
            f"{name}: the record at byte {start + place * _RECORD} has the address "
            f"0x{int(address[place]):08x}; a DVS128's bits 16 to 30 are zero: another camera's "
            "file, or a broken header"
        )
    # Times first: special events carry the clock too.
    t = _unwrap(time, name, start, backwards)
    if seen & _SPECIAL:
        pixel = (address & _SPECIAL) == 0
        address, t = address[pixel], t[pixel]
    if not len(address):
        raise QuadspikeError(
            f"{name}: no events, only a header of {start} bytes and {len(time)} special events"
        )
    if backwards == "sort" and (t[1:] < t[:-1]).any():
        order = np.argsort(t, kind="stable")
        address, t = address[order], t[order]
    x, y = upright(address, _stated_camera(data[:start], name) or camera)
    p = (1 - (address & 1)).astype(np.uint8)
    return Events.of(t, x, y, p, width=SENSOR, height=SENSOR)


def write_aedat(
    events: Events, path: str | Path, comments: Iterable[str] = (), camera: str = "upright"
) -> None:
    """Write a recording of 128 x 128 pixels; reading it gives the same events.

    A header line says how the camera stood, and a reader believes it.
    """
    write_atomic(Path(path), format_aedat(events, str(path), comments, camera))


def format_aedat(
    events: Events, name: str, comments: Iterable[str] = (), camera: str = "upright"
) -> bytes:
    """The bytes of `write_aedat`."""
    check_name("camera", camera, CAMERAS)
    _check_writable(events, name)
    x, y, p, t = (tensor.cpu().numpy() for tensor in (events.x, events.y, events.p, events.t))
    column, row = _raw(x.astype(np.uint32), y.astype(np.uint32), camera)
    words = np.empty(2 * len(t), ">u4")
    words[0::2] = (row << 8) | (column << 1) | (1 - p)
    words[1::2] = t
    lines = [
        "# This is a raw AE data file - do not edit",
        "# Data format is int32 address, int32 timestamp (8 bytes total), repeated for each event",
        "# Timestamps tick is 1 us",
        _CAMERA_LINE + camera,
        *("# " + _comment(text, name) for text in comments),
    ]
    header = _VERSION + "".join(line + "\r\n" for line in lines).encode("latin-1")
    return header + _LAST_LINE + words.tobytes()


def upright(
    address: NDArray[np.uint32], camera: str
) -> tuple[NDArray[np.int16], NDArray[np.int16]]:
    """Column and row in the upright picture, from the top left: the one place that decides it.

    The sensor counts columns from the right and rows from the bottom, as jAER draws them. In
    recordings of things turning on a table, that puts the near side of the table, where they
    look larger, at the bottom, and flattens their circle from top to bottom. CIFAR10-DVS was
    recorded by a camera lying on its side: its pictures stand upright once turned a quarter
    clockwise (see `cifar10dvs`).
    """
    from_right = ((address >> 1) & 0x7F).astype(np.int16)
    from_bottom = ((address >> 8) & 0x7F).astype(np.int16)
    if camera == "sideways":
        return from_bottom, SENSOR - 1 - from_right
    return SENSOR - 1 - from_right, SENSOR - 1 - from_bottom


def _raw(
    x: NDArray[np.uint32], y: NDArray[np.uint32], camera: str
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """The column and row bits of an address: the inverse of `upright`."""
    if camera == "sideways":
        return SENSOR - 1 - y, x
    return SENSOR - 1 - x, SENSOR - 1 - y


def _header_end(data: bytes, name: str) -> int:
    if not data.startswith(b"#!AER-DAT"):
        raise QuadspikeError(
            f"{name}: not an AEDAT file: begins with {data[:9]!r} instead of b'#!AER-DAT' at byte 0"
        )
    version = data[9:12].decode("latin-1")
    if version != "2.0":
        raise QuadspikeError(
            f"{name}: AEDAT version {version!r} at byte 9; only 2.0 is read: convert the file "
            "with jAER or DV"
        )
    lines = _LINES.match(data)
    end = lines.end() if lines else 0
    last = data.find(b"\n" + _LAST_LINE, 0, end)
    if last >= 0:
        return last + 1 + len(_LAST_LINE)
    if data[end : end + 1] == b"#":
        raise QuadspikeError(
            f"{name}: broken header: what begins at byte {end} is no line of text ended by CR LF, "
            "and no DVS128 record begins with '#'"
        )
    return end


def _unwrap(time: NDArray[np.uint32], name: str, start: int, backwards: str) -> NDArray[np.int64]:
    """Times as int64, going on where the 32-bit clock wrapped around or began anew."""
    if (time[1:] >= time[:-1]).all():
        return time.astype(np.int64)
    # Modulo the range of the clock, so that a wrap is the small step forward that it was.
    steps = np.diff(time).view(np.int32).astype(np.int64)
    falls = steps < 0
    if backwards == "error" and falls.any():
        place = int(np.flatnonzero(falls)[0]) + 1
        raise QuadspikeError(
            f"{name}: time runs backwards at byte {start + place * _RECORD}: {time[place - 1]} "
            f'then {time[place]} us; pass backwards="sort" or "unwrap"'
        )
    if backwards == "unwrap":
        steps[falls] = 0
    return np.concatenate(([0], np.cumsum(steps))) + int(time[0])


def _stated_camera(header: bytes, name: str) -> str | None:
    for line in header.decode("latin-1").split("\r\n"):
        if line.startswith(_CAMERA_LINE):
            return check_name(f"camera in the header of {name}", line[len(_CAMERA_LINE) :], CAMERAS)
    return None


def _check_writable(events: Events, name: str) -> None:
    if (events.width, events.height) != (SENSOR, SENSOR):
        raise QuadspikeError(
            f"{name}: a DVS128 file holds 128 x 128 pixels, got {events.width} x {events.height}"
        )
    if not len(events):
        raise QuadspikeError(f"{name}: there are no events to write")
    events.check(name)
    first, last = int(events.t[0]), int(events.t[-1])
    if first < 0 or last >= _WRAP:
        raise QuadspikeError(
            f"{name}: times must lie in 0..{_WRAP - 1} us, got {first}..{last}; subtract the first"
        )


def _comment(text: str, name: str) -> str:
    if not re.fullmatch(r"[\t\x20-\x7e]*", text):
        raise QuadspikeError(f"{name}: a comment must be one line of ASCII text, got {text!r}")
    return text
