from __future__ import annotations

import io
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, ImageFile

from quadspike import QuadspikeError
from quadspike.data import crops
from quadspike.data.decode import BrokenImageError, decode, open_photo
from tests.real_data import SHARED, needs


def picture(width=40, height=30, seed=0) -> Image.Image:
    """Smooth colours, all four corners different."""
    small = np.random.default_rng(seed).integers(0, 256, (3, 4, 3), dtype=np.uint8)
    return Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC)


def pixels(image: Image.Image) -> torch.Tensor:
    return torch.from_numpy(np.array(image.convert("RGB"))).permute(2, 0, 1)


def saved(image: Image.Image, path: Path, **options) -> Path:
    image.save(path, **options)
    return path


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "RGBA", "LA"])
def test_each_mode_of_a_png_becomes_the_rgb_it_shows(tmp_path, mode):
    image = picture().convert(mode)
    decoded = decode(saved(image, tmp_path / "x.png"))
    assert decoded.dtype == torch.uint8
    assert torch.equal(decoded, pixels(image))


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
def test_each_mode_of_a_jpeg_becomes_rgb(tmp_path, mode):
    decoded = decode(saved(picture().convert(mode), tmp_path / "x.JPEG", quality=100))
    expected = pixels(picture().convert(mode))
    assert (decoded.int() - expected.int()).abs().max() <= 8


def test_a_cmyk_jpeg_as_adobe_writes_it_is_not_a_negative(tmp_path):
    stored = Image.new("CMYK", (16, 16), (0, 255, 255, 0))
    path = saved(stored, tmp_path / "red.JPEG", quality=100)
    assert b"Adobe" in path.read_bytes()
    red, green, blue = decode(path).float().mean(dim=(1, 2)).tolist()
    assert red > 240
    assert green < 15
    assert blue < 15


def test_transparency_is_laid_over_white(tmp_path):
    image = Image.new("RGBA", (4, 4), (10, 20, 30, 0))
    image.paste((200, 100, 50, 255), (0, 0, 2, 4))
    decoded = decode(saved(image, tmp_path / "x.png"))
    assert decoded[:, 0, 0].tolist() == [200, 100, 50]
    assert decoded[:, 0, 3].tolist() == [255, 255, 255]

    palette = picture().convert("P")
    palette.putpixel((0, 0), 7)
    decoded = decode(saved(palette, tmp_path / "x.gif", transparency=7))
    assert decoded[:, 0, 0].tolist() == [255, 255, 255]


@pytest.mark.parametrize("suffix", ["png", "tif", "pgm"])
def test_sixteen_bits_are_cut_to_their_upper_eight(tmp_path, suffix):
    values = np.linspace(0, 65535, 64).astype(np.uint16).reshape(8, 8)
    path = tmp_path / f"x.{suffix}"
    if suffix == "pgm":
        path.write_bytes(b"P5 8 8 65535\n" + values.astype(">u2").tobytes())
    else:
        Image.fromarray(values).save(path)
    decoded = decode(path)
    assert torch.equal(decoded, torch.from_numpy((values >> 8).astype(np.uint8)).expand(3, 8, 8))


@pytest.mark.parametrize(
    ("values", "what"), [(np.float32(0.5), "floating-point"), (np.int32(-70000), "32-bit")]
)
def test_an_image_without_a_stated_white_is_refused(tmp_path, values, what):
    path = saved(Image.fromarray(np.full((4, 4), values)), tmp_path / "x.tif")
    with pytest.raises(BrokenImageError, match=rf"x\.tif: an image of {what}.*8 or 16 bits"):
        decode(path)


def test_one_channel_is_luma(tmp_path):
    path = saved(picture(), tmp_path / "x.png")
    expected = torch.from_numpy(np.array(picture().convert("L")))[None]
    assert torch.equal(decode(path, 1), expected)


# How an upright image is stored for each EXIF orientation, as numpy sees it.
STORED = {
    2: lambda x: x[:, ::-1],
    3: lambda x: x[::-1, ::-1],
    4: lambda x: x[::-1],
    5: lambda x: x.transpose(1, 0, 2),
    6: lambda x: x.transpose(1, 0, 2)[::-1],
    7: lambda x: x[::-1, ::-1].transpose(1, 0, 2),
    8: lambda x: x.transpose(1, 0, 2)[:, ::-1],
}


@pytest.mark.parametrize("suffix", ["JPEG", "png", "tif"])
@pytest.mark.parametrize("orientation", [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 255])
def test_exif_orientation_is_applied_and_nonsense_ignored(tmp_path, orientation, suffix):
    upright = np.array(picture())
    stored = STORED.get(orientation, lambda x: x)(upright)
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"quality": 100, "subsampling": 0} if suffix == "JPEG" else {}
    image = Image.fromarray(np.ascontiguousarray(stored))
    path = saved(image, tmp_path / f"x.{suffix}", exif=exif, **options)
    assert open_photo(path).size == (40, 30)
    decoded = decode(path)
    assert decoded.shape == (3, 30, 40)
    assert (decoded.int() - pixels(picture()).int()).abs().max() <= 4


def test_damaged_exif_beside_a_sound_image_is_no_damage(tmp_path):
    path = saved(picture(), tmp_path / "x.JPEG", exif=b"Exif\0\0MM\0*\xff\xff\xff\xff garbage")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert decode(path).shape == (3, 30, 40)


@pytest.mark.parametrize(
    ("suffix", "options"),
    [("JPEG", {}), ("JPEG", {"progressive": True}), *((s, {}) for s in ("png", "bmp", "tif"))],
)
def test_a_truncated_file_is_refused_wherever_it_ends(tmp_path, suffix, options):
    whole = saved(picture(200, 150), tmp_path / f"x.{suffix}", **options).read_bytes()
    path = tmp_path / f"cut.{suffix}"
    for share in (0.02, 0.3, 0.6, 0.9, 0.99):
        path.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(BrokenImageError, match="cut") as caught:
            decode(path)
        assert caught.value.path == path


def test_another_library_s_leniency_does_not_reach_us(tmp_path, monkeypatch):
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    path = saved(picture(200, 150), tmp_path / "x.JPEG")
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(BrokenImageError, match="truncated"):
        decode(path)
    assert ImageFile.LOAD_TRUNCATED_IMAGES is True


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b"just some words\n", "no image format"),
        (bytes(range(256)) * 40, "no image format"),
        (b"\xff\xd8\xff\xe0" + bytes(500), "."),
    ],
)
def test_what_is_no_image_is_refused_by_name(tmp_path, content, reason):
    path = tmp_path / "n01_1.JPEG"
    path.write_bytes(content)
    with pytest.raises(BrokenImageError, match=rf"n01_1\.JPEG: .*{reason}") as caught:
        decode(path)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_what_cannot_be_read_is_no_broken_image(tmp_path):
    (tmp_path / "x.JPEG").mkdir()
    for name, reason in (("x.JPEG", "Is a directory"), ("missing.JPEG", "No such file")):
        with pytest.raises(QuadspikeError, match=f"{name}: cannot be read: {reason}") as caught:
            decode(tmp_path / name)
        assert not isinstance(caught.value, BrokenImageError)


@pytest.mark.parametrize("limit", [1000, 400])
def test_a_decompression_bomb_is_refused_before_it_is_decoded(tmp_path, monkeypatch, limit):
    path = saved(picture(), tmp_path / "x.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
    with pytest.raises(BrokenImageError, match="decompression bomb"):
        open_photo(path)


@pytest.mark.parametrize("orientation", [1, 6])
def test_a_draft_is_smaller_but_never_below_what_is_asked(tmp_path, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = saved(picture(640, 320), tmp_path / "x.JPEG", exif=exif, quality=95)
    width, height = (640, 320) if orientation == 1 else (320, 640)
    for at_least, factor in (
        ((width // 4, height // 4), 4),
        ((width // 4, height // 2), 2),
        ((width // 2, height // 8), 2),
        ((10, height), 1),
    ):
        photo = open_photo(path)
        drafted = photo.pixels(at_least=at_least)
        assert photo.size == (width, height)
        assert drafted.shape[1:] == (height // factor, width // factor)
    full = crops.squash(decode(path), 40).int()
    drafted = crops.squash(open_photo(path).pixels(at_least=(80, 80)), 40).int()
    assert (full - drafted).abs().float().mean() < 1


@needs("imagenet-mini/odd")
def test_the_odd_originals_decode_as_pillow_shows_them():
    files = sorted((SHARED / "imagenet-mini" / "odd").glob("*.JPEG"))
    assert len(files) == 5
    for file in files:
        with Image.open(file) as image:
            assert image.getexif().get(0x0112, 0) == 0
            assert torch.equal(decode(file), pixels(image))


def test_an_image_read_from_memory_needs_no_second_look_at_the_file(tmp_path):
    path = saved(picture(), tmp_path / "x.JPEG")
    photo = open_photo(path)
    path.unlink()
    stream = io.BytesIO()
    picture().save(stream, "JPEG")
    assert torch.equal(photo.pixels(), pixels(Image.open(stream)))
