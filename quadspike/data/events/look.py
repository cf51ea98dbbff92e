"""Looking at a set of recordings: all of them, to know that it is whole, or a few."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from quadspike.data.events.files import Source, named
from quadspike.data.events.form import Events
from quadspike.data.events.frames import Framing, to_bytes
from quadspike.data.progress import Progress
from quadspike.data.split import Split
from quadspike.data.verified import Verified
from quadspike.errors import QuadspikeError


def verify_recordings(
    name: str,
    root: Path,
    listing: Callable[[], Sequence[Source]],
    decode: Callable[[Source], Events],
    progress: Progress | None = None,
) -> Verified:
    """Decode each source; the first that cannot be read is named."""
    found = f"some of the files in {root}" if any(root.glob("*")) else "nothing"
    try:
        sources = listing()
        found = f"{len(sources):,} recordings in {named(str(root), root)}"
        for done, source in enumerate(sources, start=1):
            decode(source)
            if progress is not None:
                progress(done, len(sources))
    except QuadspikeError as error:
        return Verified(name, found, str(error))
    return Verified(name, found)


def few_clips(
    name: str,
    recordings: Sequence[tuple[Source, int]],
    count: int,
    decode: Callable[[Source], Events],
    framing: Framing,
    classes: tuple[str, ...],
) -> Split:
    """The frames of `count` of the labelled recordings, evenly spread."""
    count = min(count, len(recordings))
    chosen = [recordings[place * len(recordings) // count] for place in range(count)]
    clips = [to_bytes(framing(decode(source)), framing.levels)[0] for source, _ in chosen]
    labels = torch.tensor([label for _, label in chosen])
    return Split(name, torch.stack(clips), labels, classes, framing.levels)
