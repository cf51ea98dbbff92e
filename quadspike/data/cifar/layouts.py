"""The published files of CIFAR: their names, sizes and checksums.

The archives' MD5 are those of the data's own page (https://www.cs.toronto.edu/~kriz/cifar.html);
those of the files within are what the common loaders check.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PIXELS = 3 * 32 * 32
_PAGE = "https://www.cs.toronto.edu/~kriz/"


@dataclass(frozen=True)
class Part:
    """One file of `images` records; its checksum by `algorithm`."""

    name: str
    images: int
    algorithm: Literal["sha1", "md5"]
    digest: str

    @property
    def most_bytes(self) -> int:
        """More than any published form takes: a reader must not eat all memory."""
        return 4096 * self.images + (1 << 20)


@dataclass(frozen=True)
class Labels:
    """One label of every record: what the pickles call it, and how many classes it tells."""

    key: str
    classes: int


@dataclass(frozen=True)
class Layout:
    """One published form of a data set; in a binary record the labels come first, as listed."""

    title: str
    form: Literal["binary", "python"]
    archive: str
    size: int
    md5: str
    folder: str
    train: tuple[Part, ...]
    test: tuple[Part, ...]
    labels: tuple[Labels, ...]

    @property
    def parts(self) -> tuple[Part, ...]:
        return self.train + self.test

    @property
    def url(self) -> str:
        return _PAGE + self.archive


_TEN = (Labels("labels", 10),)
_HUNDRED = (Labels("coarse_labels", 20), Labels("fine_labels", 100))

CIFAR10 = (
    Layout(
        title="CIFAR-10",
        form="binary",
        archive="cifar-10-binary.tar.gz",
        size=170_052_171,
        md5="c32a1d4ab5d03f1284b67883e8d87530",
        folder="cifar-10-batches-bin",
        train=(
            Part("data_batch_1.bin", 10_000, "sha1", "aadd24acce27caa71bf4b10992e9e7b2d74c2540"),
            Part("data_batch_2.bin", 10_000, "sha1", "c0ba65cce70568cd57b4e03e9ac8d2a5367c1795"),
            Part("data_batch_3.bin", 10_000, "sha1", "1dd00a74ab1d17a6e7d73e185b69dbf31242f295"),
            Part("data_batch_4.bin", 10_000, "sha1", "aab85764eb3584312d3c7f65fd2fd016e36a258e"),
            Part("data_batch_5.bin", 10_000, "sha1", "26e2849e66a845b7f1e4614ae70f4889ae604628"),
        ),
        test=(Part("test_batch.bin", 10_000, "sha1", "67eb016db431130d61cd03c7ad570b013799c88c"),),
        labels=_TEN,
    ),
    Layout(
        title="CIFAR-10",
        form="python",
        archive="cifar-10-python.tar.gz",
        size=170_498_071,
        md5="c58f30108f718f92721af3b95e74349a",
        folder="cifar-10-batches-py",
        train=(
            Part("data_batch_1", 10_000, "md5", "c99cafc152244af753f735de768cd75f"),
            Part("data_batch_2", 10_000, "md5", "d4bba439e000b95fd0a9bffe97cbabec"),
            Part("data_batch_3", 10_000, "md5", "54ebc095f3ab1f0389bbae665268c751"),
            Part("data_batch_4", 10_000, "md5", "634d18415352ddfa80567beed471001a"),
            Part("data_batch_5", 10_000, "md5", "482c414d41f54cd18b22e5b47cb7c3cb"),
        ),
        test=(Part("test_batch", 10_000, "md5", "40351d587109b95175f43aff81a1287e"),),
        labels=_TEN,
    ),
)

CIFAR100 = (
    Layout(
        title="CIFAR-100",
        form="binary",
        archive="cifar-100-binary.tar.gz",
        size=168_513_733,
        md5="03b5dce01913d631647c71ecec9e9cb8",
        folder="cifar-100-binary",
        train=(Part("train.bin", 50_000, "sha1", "e207cd2e05b73b1393c74c7f5e7bea451d63e08e"),),
        test=(Part("test.bin", 10_000, "sha1", "8fb6623e830365ff53cf14adec797474f5478006"),),
        labels=_HUNDRED,
    ),
    Layout(
        title="CIFAR-100",
        form="python",
        archive="cifar-100-python.tar.gz",
        size=169_001_437,
        md5="eb9058c3a382ffc7106e4002c42a8d85",
        folder="cifar-100-python",
        train=(Part("train", 50_000, "md5", "16019d7e3df5f24257cddd939b257f8d"),),
        test=(Part("test", 10_000, "md5", "f0ef6b0ae62326f3e7ffdfab6717acfc"),),
        labels=_HUNDRED,
    ),
)
