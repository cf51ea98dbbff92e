"""All parts in order, each row told and written as soon as it is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from quadspike.benchmark.contenders import OWN, PEERS
from quadspike.benchmark.epoch import epoch
from quadspike.benchmark.inference import inference
from quadspike.benchmark.profile import profile
from quadspike.benchmark.record import Record, Row
from quadspike.benchmark.setting import Job
from quadspike.benchmark.steps import ceilings, floor, own_steps, peer_steps, scaling
from quadspike.errors import QuadspikeError, check_name
from quadspike.training.distributed import current
from quadspike.training.reproducible import algorithms

PARTS: dict[str, Callable[[Job], Iterator[Row]]] = {
    "ceilings": ceilings,
    "floor": floor,
    "step": own_steps,
    "profile": profile,
    "epoch": epoch,
    "inference": inference,
    "scaling": scaling,
    "peers": peer_steps,
}
"""What can be measured, in the order it is done: what is most likely to fail comes last."""


def measure(job: Job, what: tuple[str, ...], record: Record, tell: Callable[[Row], None]) -> None:
    """Measure the parts asked for."""
    for name in what:
        check_name("part", name, PARTS)
    for name in job.only:
        contender = {**OWN, **PEERS}[check_name("contender", name, (*OWN, *PEERS))]
        if contender.needs_gpu and job.device.type != "cuda":
            raise QuadspikeError(
                f"{name} ({contender.title}) needs a GPU and cannot be measured on {job.device}; "
                "leave it out of --only"
            )
        owner = "step" if name in OWN else "peers"
        if owner not in what:
            raise QuadspikeError(
                f"{name} ({contender.title}) is of the part {owner}, which is not asked for: say "
                f"--what {' '.join((*what, owner))}, or leave it out of --only"
            )
    with algorithms(deterministic=False), current(job.device):
        for name, part in PARTS.items():
            if name in what:
                for row in part(job):
                    row = {"part": name, **row}
                    record.add(row)
                    tell(row)
