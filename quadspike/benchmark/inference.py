"""The part that runs the folded network: images a second, eager and as one CUDA graph."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

import torch

from quadspike.benchmark.record import Row
from quadspike.benchmark.setting import Job, attempt
from quadspike.benchmark.timing import Captured, Peak, Work, timed
from quadspike.deploy import fold
from quadspike.models import Network
from quadspike.training.samples import random_batch

_CALIBRATIONS = 20
"""Batches that move the running statistics from their start."""


def inference(job: Job) -> Iterator[Row]:
    """Every batch size in every precision."""
    batches = (1, 2) if job.smoke else (1, 128, 512, 2048)
    on_gpu = job.device.type == "cuda"
    types = {"bf16": torch.bfloat16, "fp16": torch.float16} if on_gpu else {"fp32": torch.float32}
    forms = ("graph", "eager") if on_gpu else ("eager",)
    model = _calibrated(job)
    for precision, dtype in types.items():
        folded = fold(model).to(dtype)
        for batch in batches:
            for form in forms:
                yield attempt(
                    job,
                    form,
                    f"folded, {precision}, {form}",
                    lambda: _infer(job, folded, batch, dtype, form),  # noqa: B023
                    batch=batch,
                    precision=precision,
                )


@torch.no_grad()
def _calibrated(job: Job) -> Network:
    model = job.setting.network(job.device)
    small = job.setting.but(batch_size=min(32, job.setting.recipe.batch_size))
    for _ in range(1 if job.smoke else _CALIBRATIONS):
        model(small.batch(job.device)[0])
    return model


@torch.inference_mode()
def _infer(job: Job, model: Network, batch: int, dtype: torch.dtype, form: str) -> Row:
    peak = Peak(job.device)
    inputs, _ = random_batch(job.setting.recipe, job.setting.geometry, batch, job.device)
    inputs = inputs.to(dtype)
    work: Work = lambda: model(inputs)  # noqa: E731
    timing = timed(Captured(work) if form == "graph" else work, job.device, job.effort)
    rate = 1e3 * batch / timing.ms
    return {**asdict(timing), "peak_gib": peak.gib(), "images_per_second": rate}
