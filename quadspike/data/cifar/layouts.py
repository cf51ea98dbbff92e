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
class Layout:
    """One published form of a data set, its files with their checksums."""

    title: str
    form: Literal["binary", "python"]
    archive: str
    size: int
    md5: str
    folder: str
    train: dict[str, str]
    test: dict[str, str]
    labels: tuple[str, ...]
    """What the pickles call them; in a binary record they come first, in that order."""

    @property
    def files(self) -> dict[str, str]:
        """All of them, and the SHA-1 (binary) or MD5 (python) of each."""
        return self.train | self.test

    @property
    def url(self) -> str:
        return _PAGE + self.archive


_TEN = ("labels",)
_HUNDRED = ("coarse_labels", "fine_labels")

CIFAR10 = (
    Layout(
        title="CIFAR-10",
        form="binary",
        archive="cifar-10-binary.tar.gz",
        size=170_052_171,
        md5="c32a1d4ab5d03f1284b67883e8d87530",
        folder="cifar-10-batches-bin",
        train={
            "data_batch_1.bin": "aadd24acce27caa71bf4b10992e9e7b2d74c2540",
            "data_batch_2.bin": "c0ba65cce70568cd57b4e03e9ac8d2a5367c1795",
            "data_batch_3.bin": "1dd00a74ab1d17a6e7d73e185b69dbf31242f295",
            "data_batch_4.bin": "aab85764eb3584312d3c7f65fd2fd016e36a258e",
            "data_batch_5.bin": "26e2849e66a845b7f1e4614ae70f4889ae604628",
        },
        test={"test_batch.bin": "67eb016db431130d61cd03c7ad570b013799c88c"},
        labels=_TEN,
    ),
    Layout(
        title="CIFAR-10",
        form="python",
        archive="cifar-10-python.tar.gz",
        size=170_498_071,
        md5="c58f30108f718f92721af3b95e74349a",
        folder="cifar-10-batches-py",
        train={
            "data_batch_1": "c99cafc152244af753f735de768cd75f",
            "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
            "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
            "data_batch_4": "634d18415352ddfa80567beed471001a",
            "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
        },
        test={"test_batch": "40351d587109b95175f43aff81a1287e"},
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
        train={"train.bin": "e207cd2e05b73b1393c74c7f5e7bea451d63e08e"},
        test={"test.bin": "8fb6623e830365ff53cf14adec797474f5478006"},
        labels=_HUNDRED,
    ),
    Layout(
        title="CIFAR-100",
        form="python",
        archive="cifar-100-python.tar.gz",
        size=169_001_437,
        md5="eb9058c3a382ffc7106e4002c42a8d85",
        folder="cifar-100-python",
        train={"train": "16019d7e3df5f24257cddd939b257f8d"},
        test={"test": "f0ef6b0ae62326f3e7ffdfab6717acfc"},
        labels=_HUNDRED,
    ),
)
