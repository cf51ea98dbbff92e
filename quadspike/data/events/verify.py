"""Reading every recording of a set, to know that it is whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from quadspike.data.events.files import Source
from quadspike.data.events.form import Events
from quadspike.data.progress import Progress
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
    found = "nothing"
    try:
        sources = listing()
        found = f"{len(sources):,} recordings in {root}"
        for done, source in enumerate(sources, start=1):
            decode(source)
            if progress is not None:
                progress(done, len(sources))
    except QuadspikeError as error:
        return Verified(name, found, whole=False, problem=str(error))
    return Verified(name, found, whole=True)
