"""The parts that time one training step: ours, the floor, the peers; and ours against T and B."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict

from quadspike.benchmark.contenders import OWN, PEERS, Contender, best_own
from quadspike.benchmark.floor import DTYPES, Floor
from quadspike.benchmark.record import Row
from quadspike.benchmark.setting import Job, Setting, attempt
from quadspike.benchmark.timing import Captured, Peak, Work, copy_rate, matrix_rate, timed


def ceilings(job: Job) -> Iterator[Row]:
    """What the device does at best, measured now."""
    rates = {"copy": ("tb_s", copy_rate), "matrix product": ("tflop_s", matrix_rate)}
    for name, (field, rate) in rates.items():
        yield attempt(job, name, f"largest {name}", lambda: {field: rate(job.device, job.effort)})  # noqa: B023


def own_steps(job: Job) -> Iterator[Row]:
    """Our step, captured and eager."""
    yield from _contenders(job, OWN)


def peer_steps(job: Job) -> Iterator[Row]:
    """Everyone else's."""
    yield from _contenders(job, PEERS)


def _contenders(job: Job, contenders: Mapping[str, Contender]) -> Iterator[Row]:
    for name, contender in contenders.items():
        if job.wants(name) and (job.device.type == "cuda" or not contender.needs_gpu):
            yield attempt(job, name, contender.title, lambda: time_step(job, contender))  # noqa: B023


def time_step(job: Job, contender: Contender, setting: Setting | None = None) -> Row:
    """Time and memory of a contender's step."""
    peak = Peak(job.device)
    work: Work = contender.make(setting or job.setting, job.device)
    timing = timed(work, job.device, job.effort)
    return {**asdict(timing), "peak_gib": peak.gib()}


def floor(job: Job) -> Iterator[Row]:
    """Every synapse of the step alone."""
    yield attempt(job, "floor", "the synapses alone", lambda: _floor(job))


def _floor(job: Job) -> Row:
    peak = Peak(job.device)
    inputs, _ = job.setting.batch(job.device)
    dtype = DTYPES[job.setting.recipe.precision]
    synapses = Floor(job.setting.network(job.device), inputs, dtype)
    work = Captured(synapses) if job.device.type == "cuda" else synapses
    timing = timed(work, job.device, job.effort)
    rate = synapses.flops / timing.ms / 1e9
    best = matrix_rate(job.device, job.effort)
    return {
        **asdict(timing),
        "peak_gib": peak.gib(),
        "synapses": len(synapses.passes),
        "flops": synapses.flops,
        "tflop_s": rate,
        "matrix_share": rate / best,
    }


def scaling(job: Job) -> Iterator[Row]:
    """Our step at other numbers of steps, and at other batches."""
    own = best_own(job.device)
    values: dict[str, tuple[int, ...]] = {
        "timesteps": (1, 2, 4, 8, 16),
        "batch_size": (32, 64, 128, 256, 512),
    }
    if job.smoke:
        values = {"timesteps": (1, 2), "batch_size": (2, 4)}
    for field, those in values.items():
        for value in those:
            setting = job.setting.but(**{field: value})
            yield attempt(
                job,
                f"by {field}",
                own.title,
                lambda: time_step(job, own, setting),  # noqa: B023
                timesteps=setting.recipe.timesteps,
                batch=setting.recipe.batch_size,
            )
