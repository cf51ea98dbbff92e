"""Recordings to clips of bytes, on several processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from typing import NamedTuple

import torch

from quadspike.data.events.files import Source
from quadspike.data.events.form import Events
from quadspike.data.events.frames import Framing, to_bytes
from quadspike.data.processors import usable_processors
from quadspike.errors import QuadspikeError

Decode = Callable[[Source], Events]
"""Reads a recording; a function of a module, or a `partial` of one, so that processes share it."""
_FEW = 200


class Clip(NamedTuple):
    """The frames of one recording as bytes, and how many of its pixels were clipped."""

    data: bytes
    shape: tuple[int, ...]
    clipped: int


def make_clip(source: Source, decode: Decode, framing: Framing) -> Clip:
    """The clip of one recording."""
    frames, clipped = to_bytes(framing(decode(source)), framing.levels)
    return Clip(frames.numpy().tobytes(), tuple(frames.shape), clipped)


def make_clips(
    sources: Sequence[Source], decode: Decode, framing: Framing, workers: int | None = None
) -> Generator[Clip]:
    """The clips of all recordings, in order."""
    if workers is None:
        # All of them: while one worker of a machine makes the frames, the others wait for it.
        workers = 0 if len(sources) < _FEW else usable_processors()
    make = partial(make_clip, decode=decode, framing=framing)
    if workers <= 0:
        yield from map(make, sources)
        return
    # Fresh processes: a forked one may hang in the thread pool it inherits from torch.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, initializer=_start_worker)
    try:
        yield from pool.map(make, sources, chunksize=4)
    except BrokenProcessPool:
        raise QuadspikeError(
            "a process that makes frames died; call this under `if __name__ == '__main__':`, "
            "lower workers if memory ran out, or pass workers=0 to use none"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _start_worker() -> None:
    torch.set_num_threads(1)
    # Ctrl-C reaches the whole group; the parent alone answers it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A killed parent cannot end its workers: they watch for that themselves."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
