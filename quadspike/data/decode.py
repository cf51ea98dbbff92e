"""From an image file to bytes of red, green and blue, or an error that names the file.

Pillow decodes. What is no plain RGB becomes it in one stated way: grey is repeated, a palette
looked up, CMYK converted as Pillow does (the inversion Adobe writes into JPEGs undone), 16
bits cut to their upper 8, and transparency laid over white. An EXIF orientation is applied;
one of 0, or nonsense, is no orientation.

A truncated file is refused, never filled with grey, and so is an image of more pixels than
`PIL.Image.MAX_IMAGE_PIXELS`. Damage inside a JPEG that is otherwise complete passes: libjpeg
conceals it and Pillow does not tell.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageFile, UnidentifiedImageError
from torch import Tensor

from quadspike.errors import QuadspikeError

_ORIENTATION = 0x0112
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_DRAFTED = ("JPEG", "MPO")
_NO_RANGE = "says nowhere which value is white; save it with 8 or 16 bits a channel"


class BrokenImageError(QuadspikeError):
    """A file that could be read but holds no whole image; the message names both."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


@dataclass(frozen=True)
class Photo:
    """An image file whose header is read: its upright size is known, its pixels are not yet."""

    path: Path
    image: Image.Image
    orientation: int
    size: tuple[int, int]
    """Width and height, upright."""

    def pixels(self, channels: int = 3, at_least: tuple[int, int] | None = None) -> Tensor:
        """The whole image, upright, uint8 `[channels, H, W]` laid out channels last.

        With `at_least` (width, height), a JPEG may come 2, 4 or 8 times smaller, but not below
        that: libjpeg then drops the frequencies nobody will see before they are decoded. Asked
        for twice the final size, photographs come out 1 (halved) to 2 (quartered) of 255 levels
        off, root mean square. Decoded once: a later call gives the same pixels.
        """
        with _reading(self.path):
            if at_least is not None and self.image.format in _DRAFTED:
                self.image.draft(None, _turned(at_least, self.orientation))
            image = _rgb(self.image)
            if self.orientation in _UPRIGHT:
                image = image.transpose(_UPRIGHT[self.orientation])
            grid = np.array(image if channels == 3 else image.convert("L"))
        return torch.from_numpy(grid.reshape(*grid.shape[:2], channels)).permute(2, 0, 1)


def open_photo(path: Path | str) -> Photo:
    """Read a file and its header; `BrokenImageError` where the bytes are no image."""
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise QuadspikeError(f"{path}: cannot be read: {error.strerror}") from error
    if not data:
        raise BrokenImageError(path, "the file is empty")
    with _reading(path):
        image = Image.open(io.BytesIO(data))
        if image.format not in _DRAFTED:
            # Some formats keep the orientation behind the pixels, or apply it while loading.
            image.load()
        orientation = _orientation(image)
        return Photo(path, image, orientation, _turned(image.size, orientation))


def decode(path: Path | str, channels: int = 3) -> Tensor:
    """The file's first image, upright, as uint8 `[channels, H, W]`; 3 is RGB, 1 is luma."""
    return open_photo(path).pixels(channels)


def _orientation(image: Image.Image) -> int:
    """1 to 8 as EXIF counts them; 1, upright, for whatever cannot be meant."""
    try:
        given = image.getexif().get(_ORIENTATION)
    except Exception:  # damaged metadata beside a sound image, in any way Pillow fails on it
        return 1
    return given if isinstance(given, int) and given in _UPRIGHT else 1


def _turned(size: tuple[int, int], orientation: int) -> tuple[int, int]:
    """Width and height, exchanged where the orientation lies the image on its side."""
    return size[::-1] if orientation >= 5 else size


def _rgb(image: Image.Image) -> Image.Image:
    image.load()
    if image.mode == "RGB" and "transparency" not in image.info:
        return image
    if image.mode.startswith("I"):
        values = np.asarray(image)
        if image.mode == "I" and not 0 <= int(values.min()) <= int(values.max()) < 2**16:
            raise QuadspikeError(f"an image of 32-bit integers {_NO_RANGE}")
        return Image.fromarray((values >> 8).astype(np.uint8)).convert("RGB")
    if image.mode == "F":
        raise QuadspikeError(f"an image of floating-point numbers {_NO_RANGE}")
    if image.has_transparency_data:
        over = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", over.size, "white"), over)
    return image.convert("RGB")


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Pillow as strict as it can be, quiet, and failing in one way."""
    lenient, ImageFile.LOAD_TRUNCATED_IMAGES = ImageFile.LOAD_TRUNCATED_IMAGES, False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            yield
    except MemoryError:  # says nothing about the file
        raise
    except QuadspikeError as error:
        raise BrokenImageError(path, str(error)) from None
    except Exception as error:  # whatever one of forty decoders does with foreign bytes
        raise BrokenImageError(path, _reason(error)) from error
    finally:
        ImageFile.LOAD_TRUNCATED_IMAGES = lenient


def _reason(error: Exception) -> str:
    if isinstance(error, UnidentifiedImageError):
        return "in no image format that Pillow knows"
    if isinstance(error, Image.DecompressionBombError | Image.DecompressionBombWarning):
        return f"refused as a decompression bomb: {error}"
    return f"broken image: {str(error) or type(error).__name__}"
