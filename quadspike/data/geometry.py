"""What the inputs of a data set look like, without its files."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Geometry:
    """Square frames of `channels` x `size` x `size`, sorted into `classes`.

    A static data set shows one image at every step; any other brings a frame a step.

    >>> GEOMETRIES["cifar10-dvs"].frame
    (2, 48, 48)
    """

    channels: int
    size: int
    classes: int
    static: bool = True

    @property
    def frame(self) -> tuple[int, int, int]:
        """The shape of one sample at one step, `[C, H, W]`."""
        return self.channels, self.size, self.size


GEOMETRIES: dict[str, Geometry] = {
    "cifar10": Geometry(3, 32, 10),
    "cifar100": Geometry(3, 32, 100),
    "imagenet": Geometry(3, 224, 1000),
    "cifar10-dvs": Geometry(2, 48, 10, static=False),
    "digits": Geometry(1, 8, 10),
}
