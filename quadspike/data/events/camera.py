"""A simulated event camera, in batches and on the device of the images.

The recording of CIFAR10-DVS, as far as it is published: a picture, grey and bicubically scaled
to 512 x 512, moves along a closed path of four straight legs on a screen refreshed at 60 Hz,
six loops in 1.2 s, before a sensor of 128 x 128 pixels.

A recording is a function of (camera, image, sample, seed) alone, to the last bit on every
device, whatever batch it is made in: all arithmetic is in whole numbers. What belongs to the
sensor (thresholds, hot pixels) depends on the seed alone, since one camera records a data set;
path and noise depend on seed and sample.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from quadspike.data.events.camera_keys import merge
from quadspike.data.events.camera_noise import background, clear_of
from quadspike.data.events.camera_pixels import Pixels, Spikes
from quadspike.data.events.camera_screen import Scene, positions
from quadspike.data.events.camera_sensor import Sensor, log_table, make_sensor
from quadspike.data.events.frames import EventBatch
from quadspike.errors import QuadspikeError, check_count
from quadspike.randomness import per_sample

_PULL_BITS = 14


@dataclass(frozen=True)
class EventCamera:
    """A screen, a path and a sensor; the defaults are CIFAR10-DVS's.

    `sensor` and `screen` are sizes in pixels. `radius`, in screen pixels, is drawn between two
    bounds for each recording, and where on its loop the path begins is drawn too. The sensor
    sees log(grey + black), grey in 0..255. `threshold` and `threshold_spread` are mean and
    standard deviation over pixels, ON and OFF drawn apart; `refractory_us` is a pixel's dead
    time. Noise comes at `noise_hz` a pixel and another `hot_hz` a hot pixel, a share `noise_on`
    of it ON: that share, and how many pixels run hot, were measured on a real DVS128.

    `response_ms` is the time constant with which the screen's light follows a refresh, taken in
    `substeps` straight pieces of log brightness; 0 means one straight piece a refresh.

    `threshold` is calibrated: the test images of CIFAR-10 give 204,109 events on average, with
    seed 0; CIFAR10-DVS has 204,979.

    >>> camera = EventCamera(sensor=8, screen=32, radius=(2, 2), noise_hz=0, hot_pixels=0)
    >>> image = torch.zeros(1, 1, 8, 8, dtype=torch.uint8)
    >>> image[..., 4:] = 255
    >>> sorted(set(camera.record(image, torch.tensor([0]), seed=0).x.tolist()))
    [3, 4]
    """

    sensor: int = 128
    screen: int = 512
    radius: tuple[float, float] = (16.0, 20.0)
    loops: int = 6
    loop_ms: float = 200.0
    refresh_hz: float = 60.0
    response_ms: float = 6.0
    substeps: int = 4
    black: float = 16.0
    threshold: float = 0.194
    threshold_spread: float = 0.03
    refractory_us: int = 1000
    noise_hz: float = 0.1
    noise_on: float = 0.83
    hot_pixels: int = 8
    hot_hz: float = 2.0

    def __post_init__(self) -> None:
        for name in ("sensor", "screen", "loops", "substeps"):
            check_count(name, getattr(self, name))
        if self.screen % self.sensor or self.screen // self.sensor > 128:
            raise QuadspikeError(
                f"the screen must have 1 to 128 times as many pixels as the sensor each way, a "
                f"whole number, got {self.screen} and {self.sensor}"
            )
        for name in ("loop_ms", "refresh_hz", "black", "threshold"):
            self._check_between(name, 1e-3, 1e6)
        for name in ("response_ms", "threshold_spread", "noise_hz", "hot_hz"):
            self._check_between(name, 0.0, 1e6)
        self._check_between("noise_on", 0.0, 1.0)
        for name, most in (("refractory_us", 10**6), ("hot_pixels", self.sensor**2)):
            given = getattr(self, name)
            if not isinstance(given, int) or not 0 <= given <= most:
                raise QuadspikeError(f"{name} must be a whole number in 0..{most}, got {given!r}")
        if not (
            isinstance(self.radius, tuple)
            and len(self.radius) == 2
            and 0 <= self.radius[0] <= self.radius[1] <= self.screen
        ):
            raise QuadspikeError(
                f"radius must be two numbers (least, most) in 0..{self.screen}, got {self.radius!r}"
            )
        if not (
            self.duration_us <= 10**9
            and self.refreshes >= 1
            and self.refreshes * self.substeps <= self.duration_us
        ):
            raise QuadspikeError(
                "a recording must last from one refresh to 1000 s, a substep at least 1 us, got "
                f"{self.loops} loops of {self.loop_ms:g} ms at {self.refresh_hz:g} Hz in "
                f"{self.substeps} substeps"
            )

    @property
    def duration_us(self) -> int:
        """How long a recording lasts, in microseconds."""
        return round(self.loops * self.loop_ms * 1000)

    @property
    def refreshes(self) -> int:
        """How many times the picture moves, rounded to whole refreshes of the screen."""
        return round(self.duration_us * self.refresh_hz * 1e-6)

    def record(self, images: Tensor, samples: Tensor, seed: int) -> EventBatch:
        """Recordings of uint8 images `[B, 1 or 3, H, W]`, on their device.

        `samples` `[B]` says which sample of its data set each image is: its path and noise
        are functions of that number and the seed. Times run from 0 to `duration_us`; events
        of one microsecond stand in the order of rows, then columns, OFF before ON.
        """
        if samples.shape != images.shape[:1] or samples.dtype != torch.int64:
            raise QuadspikeError(
                f"samples must be int64 [{len(images)}], one for each image, "
                f"got {samples.dtype} {list(samples.shape)}"
            )
        pixels = self.sensor * self.sensor
        sensor = Sensor(
            *(
                field.to(images.device)
                for field in make_sensor(
                    pixels, self.threshold, self.threshold_spread, self.hot_pixels, seed
                )
            )
        )
        samples = samples.to(images.device)
        real = self._watch(images, samples, seed, sensor)
        everywhere = torch.arange(pixels, device=images.device)
        noise = [
            background(
                samples,
                seed,
                places,
                pixels,
                hertz=hertz,
                on_share=self.noise_on,
                duration=self.duration_us,
                name=name,
            )
            for places, hertz, name in (
                (everywhere, self.noise_hz, "camera noise"),
                (sensor.hot, self.hot_hz, "camera hot noise"),
            )
        ]
        kept = clear_of(_joined(noise), real, self.refractory_us, self.duration_us)
        return merge([real, kept], len(images), self.sensor, self.duration_us)

    def _watch(self, images: Tensor, samples: Tensor, seed: int, sensor: Sensor) -> Spikes:
        """The events of the moving pictures, without noise."""
        least, most = self.radius
        scene = Scene(images, self.screen, self.sensor, margin=math.ceil(most))
        draws = per_sample(2, samples, seed, 0, "camera path").double()
        radius = least + (most - least) * draws[:, 0]
        right, down = positions(radius, draws[:, 1], self.loops, self.refreshes)
        logs = log_table(self.black).to(images.device)
        pieces = self.substeps if self.response_ms else 1
        pull = self._pull(pieces)
        light = scene.seen(right[:, 0], down[:, 0])
        watching = Pixels(logs[light], sensor.on, sensor.off, self.refractory_us)
        ends = [
            round(self.duration_us * piece / (self.refreshes * pieces))
            for piece in range(self.refreshes * pieces + 1)
        ]
        spikes = []
        for refresh in range(1, self.refreshes + 1):
            target = scene.seen(right[:, refresh], down[:, refresh])
            for piece in range((refresh - 1) * pieces, refresh * pieces):
                step = ((target - light) * pull + (1 << _PULL_BITS - 1)) >> _PULL_BITS
                light = light + step
                start, end = ends[piece : piece + 2]
                spikes.append(watching.see(logs[light], start, end - start))
        return _joined(spikes)

    def _pull(self, pieces: int) -> int:
        """How far light goes towards its target in one piece, of 2^14 parts."""
        if not self.response_ms:
            return 1 << _PULL_BITS
        piece_ms = self.duration_us * 1e-3 / (self.refreshes * pieces)
        return round((1 - math.exp(-piece_ms / self.response_ms)) * (1 << _PULL_BITS))

    def _check_between(self, name: str, least: float, most: float) -> None:
        given = getattr(self, name)
        if not isinstance(given, int | float) or not least <= given <= most:
            raise QuadspikeError(f"{name} must lie in {least:g}..{most:g}, got {given!r}")


CIFAR10_DVS_CAMERA = EventCamera()
"""The camera of CIFAR10-DVS."""


def _joined(parts: Sequence[Spikes]) -> Spikes:
    return Spikes(*(torch.cat(field) for field in zip(*parts, strict=True)))
