"""ImageNet (ILSVRC 2012) from its folders of JPEGs, decoded when asked for.

    root/train/<synset>/*.JPEG
    root/val/<synset>/*.JPEG

A class is the place of its synset among the sorted synsets of `train` (of `val`, where there
is no `train`). Any set in that layout can be read, with any number of classes. The half of a
transform that changes an image's size runs where it is decoded; the rest runs in batches on
the device:

| transform | training | test |
|---|---|---|
| `"paper"` | squash to 256, random crop 224; flip, cutout | squash to 256, centre crop 224 |
| `"usual"` | random-resized crop 224; flip | shorter side to 256, centre crop 224 |

and then the normalisation. To squash is to resize to a square, whatever the aspect. The paper
states its training transform alone, without the size of the hole; its test transform is ours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path

from torch import Tensor

from quadspike.data.augment import Cutout, Normalize, Pipeline, RandomFlip
from quadspike.data.crops import (
    TRIES,
    centre_box,
    crop,
    random_crop_box,
    random_resized_crop_box,
    shorter_side,
    squash,
)
from quadspike.data.decode import BrokenImageError, Photo, open_photo
from quadspike.data.geometry import GEOMETRIES
from quadspike.data.listing import check_same_classes, class_folders, list_images
from quadspike.data.loader import Draw, Transform
from quadspike.data.progress import Progress
from quadspike.data.verified import Verified
from quadspike.errors import QuadspikeError, check_name

MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)
SIZE = 224
RESIZED = 256
LAYOUT = "train/<synset>/*.JPEG and val/<synset>/*.JPEG"
_SUFFIXES = frozenset({".jpeg", ".jpg", ".png", ".webp"})
_NAMED = 10
_GAP = 2  # how many times the final size a JPEG is decoded at, at least


class ImageNet:
    """One split as files; `StreamingLoader` makes batches of it.

    A broken file is an error (`broken="fatal"`) or stands aside for the next good one
    (`"skip"`). `cutout` is the side of the hole, where the transform has one; 0 for none.
    `draft=False` decodes every JPEG in full (see `Photo.pixels`).
    """

    size = SIZE

    def __init__(
        self,
        root: Path | str,
        split: str,
        transform: str = "paper",
        broken: str = "fatal",
        *,
        cutout: int = 16,
        draft: bool = True,
    ) -> None:
        self.split = check_name("split of ImageNet", split, ("train", "val"))
        self.transform = check_name("transform of ImageNet", transform, ("paper", "usual"))
        self.broken = check_name("way with broken images", broken, ("fatal", "skip"))
        self.draft = draft
        self.name = f"imagenet/{split}"
        self.listing = list_images(
            Path(root) / split, _classes(Path(root), split), _SUFFIXES, LAYOUT
        )
        self.classes = self.listing.classes
        self.labels = self.listing.labels
        self.cutout = cutout if transform == "paper" else 0
        self._show(augmented=split == "train")

    def _show(self, augmented: bool) -> None:
        """Settle how images are shown: augmented, or as for a test."""
        self.augmented = augmented
        self.draws = 0 if not augmented else 2 if self.transform == "paper" else 4 * TRIES
        steps: tuple[Transform, ...] = (Normalize(MEAN, STD),)
        if augmented:
            hole = (Cutout(self.cutout),) if self.cutout else ()
            steps = (RandomFlip(), *hole, *steps)
        self.pipeline = Pipeline(steps)

    def subset(self, indices: Tensor, augmented: bool) -> ImageNet:
        """Those images, in that order, augmented or shown as for a test."""
        part = copy(self)
        places = indices.numpy()
        part.listing = replace(
            self.listing, names=self.listing.names[places], labels=self.labels[indices]
        )
        part.labels = part.listing.labels
        part._show(augmented)
        return part

    def __len__(self) -> int:
        return len(self.listing)

    def file(self, index: int) -> Path:
        """Where image `index` lies."""
        return self.listing.file(index)

    def load(self, index: int, u: Sequence[float]) -> Tensor:
        """Image `index` as uint8 `[3, 224, 224]`, its box chosen by the uniforms `u`."""
        photo = open_photo(self.file(index))
        try:
            return self._paper(photo, u) if self.transform == "paper" else self._usual(photo, u)
        except BrokenImageError:
            raise
        except QuadspikeError as error:
            raise BrokenImageError(photo.path, str(error)) from error

    def finish(self, x: Tensor, draw: Draw) -> Tensor:
        """A batch of loaded images to what the network takes, on the batch's device."""
        return self.pipeline(x, draw)

    def _paper(self, photo: Photo, u: Sequence[float]) -> Tensor:
        image = squash(self._pixels(photo, RESIZED, RESIZED), RESIZED)
        if self.augmented:
            return crop(image, random_crop_box(RESIZED, RESIZED, SIZE, u))
        return crop(image, centre_box(RESIZED, RESIZED, SIZE))

    def _usual(self, photo: Photo, u: Sequence[float]) -> Tensor:
        width, height = photo.size
        if self.augmented:
            left, top, right, bottom = random_resized_crop_box(width, height, u)
            image = self._pixels(
                photo, SIZE * width / (right - left), SIZE * height / (bottom - top)
            )
            # A draft shrinks the box with the image; otherwise both factors are 1.
            x, y = image.shape[-1] / width, image.shape[-2] / height
            box = round(left * x), round(top * y), round(right * x), round(bottom * y)
            return squash(crop(image, box), SIZE)
        scale = RESIZED / min(width, height)
        image = shorter_side(self._pixels(photo, width * scale, height * scale), RESIZED)
        return crop(image, centre_box(image.shape[-1], image.shape[-2], SIZE))

    def _pixels(self, photo: Photo, width: float, height: float) -> Tensor:
        """The photo, large enough to be shown at that size."""
        enough = math.ceil(_GAP * width), math.ceil(_GAP * height)
        return photo.pixels(at_least=enough if self.draft else None)


def verify_imagenet(root: Path | str, progress: Progress | None = None) -> Verified:
    """List both splits and decode every image, in draft; the broken ones are counted and named."""
    found = f"some of the files in {root}" if any(Path(root).glob("*")) else "nothing"
    broken, done = [], 0
    try:
        splits = [ImageNet(root, split) for split in ("train", "val")]
    except QuadspikeError as error:
        return Verified("imagenet", found, str(error))
    total = sum(map(len, splits))
    classes, all_of_them = len(splits[0].classes), GEOMETRIES["imagenet"].classes
    share = f" of {all_of_them:,}" if classes < all_of_them else ""
    found = f"{total:,} images of {classes:,}{share} classes in {root}"
    for files in splits:
        for index in range(len(files)):
            try:
                open_photo(files.file(index)).pixels(at_least=(1, 1))
            except QuadspikeError as error:
                broken.append(str(error))
            done += 1
            if progress is not None:
                progress(done, total)
    more = f"; and {len(broken) - _NAMED} more" if len(broken) > _NAMED else ""
    problem = f"{len(broken)} broken: {'; '.join(broken[:_NAMED])}{more}" if broken else ""
    return Verified("imagenet", found, problem)


def _classes(root: Path, split: str) -> tuple[str, ...]:
    """The synsets that number the classes, the same for both splits."""
    if split == "val":
        _refuse_flat(root / "val")
    theirs = class_folders(root / split, LAYOUT)
    if split == "train" or not (root / "train").is_dir():
        return theirs
    check_same_classes(root / "train", class_folders(root / "train", LAYOUT), root / "val", theirs)
    return theirs


def _refuse_flat(val: Path) -> None:
    if val.is_dir() and any(val.glob("ILSVRC2012_val_*")):
        raise QuadspikeError(
            f"{val}: the images lie flat; sort them into val/<synset>/. (The numbers in "
            "ILSVRC2012_validation_ground_truth.txt do not count the sorted synsets: the "
            "development kit's meta.mat says which synset each one is.)"
        )
