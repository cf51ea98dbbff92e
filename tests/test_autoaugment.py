from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps

from quadspike import QuadspikeError
from quadspike.data.augment import AutoAugment
from quadspike.data.augment.affine import affine
from quadspike.data.augment.operations import ALONE, apply, apply_by_group
from quadspike.data.augment.policies import ENHANCED, OPERATIONS, POLICIES, SIGNED, magnitude
from quadspike.data.loader import Draw

SIZE = 32


def pictures(count=24, height=SIZE, width=SIZE, seed=0):
    """Noise, smooth gradients, few-valued, dark, and flat pictures, uint8 [B, 3, H, W]."""
    rng = np.random.default_rng(seed)
    noise = rng.integers(0, 256, (count, 3, height, width))
    waves = rng.uniform(0, 0.5, (count, 3, 2, 1, 1)) * np.indices((height, width))
    smooth = 127.5 + rng.uniform(20, 127, (count, 3, 1, 1)) * np.sin(waves.sum(2))
    kinds = [
        noise,
        smooth,
        noise // 64 * 64 + 10,
        noise // 5 + 40,
        np.broadcast_to(noise[..., :1, :1], noise.shape),
        np.where(noise < 250, 17, noise),
    ]
    chosen = [kinds[i % len(kinds)][i] for i in range(count)]
    return torch.from_numpy(np.stack(chosen).clip(0, 255).astype(np.uint8))


def to_pillow(image):
    return Image.fromarray(image.permute(1, 2, 0).contiguous().numpy())


def from_pillow(image):
    return torch.from_numpy(np.asarray(image).copy()).permute(2, 0, 1)


def by_matrix(image, *matrix):
    return image.transform(image.size, Image.Transform.AFFINE, matrix, fillcolor=(128,) * 3)


# What each operation is, in Pillow's words; translations in pixels.
PILLOW = {
    "identity": lambda image, amount: image,
    "shear_x": lambda image, amount: by_matrix(image, 1, amount, 0, 0, 1, 0),
    "shear_y": lambda image, amount: by_matrix(image, 1, 0, 0, amount, 1, 0),
    "translate_x": lambda image, amount: by_matrix(image, 1, 0, amount, 0, 1, 0),
    "translate_y": lambda image, amount: by_matrix(image, 1, 0, 0, 0, 1, amount),
    "rotate": lambda image, amount: image.rotate(amount, fillcolor=(128,) * 3),
    "invert": lambda image, amount: ImageOps.invert(image),
    "solarize": lambda image, amount: ImageOps.solarize(image, amount),
    "posterize": lambda image, amount: ImageOps.posterize(image, int(amount)),
    "brightness": lambda image, amount: ImageEnhance.Brightness(image).enhance(amount),
    "contrast": lambda image, amount: ImageEnhance.Contrast(image).enhance(amount),
    "autocontrast": lambda image, amount: ImageOps.autocontrast(image),
    "equalize": lambda image, amount: ImageOps.equalize(image),
    "colour": lambda image, amount: ImageEnhance.Color(image).enhance(amount),
    "sharpness": lambda image, amount: ImageEnhance.Sharpness(image).enhance(amount),
}

# Ours, translations in pixels too: a share of the size would be rounded.
OURS = {
    **ALONE,
    "translate_x": lambda x, pixels: affine(x, right=pixels),
    "translate_y": lambda x, pixels: affine(x, down=pixels),
}


def amounts(name):
    """Every level with both signs, and uneven values between and beyond."""
    levels = [magnitude(name, level) for level in range(10)]
    if name in ("translate_x", "translate_y"):
        levels = [share * SIZE for share in levels] + [0.5, 1.5, 31.49, 31.5, 40.0]
    if name == "rotate":
        levels += [0.37, 45.0, 90.0, 123.4, 180.0]
    if name in ("shear_x", "shear_y"):
        levels += [0.123, 0.9]
    if name in SIGNED:
        return levels + [-level for level in levels]
    if name in ENHANCED:
        levels += [0.137, 1.5]
        return [1 + level for level in levels] + [1 - level for level in levels]
    if name == "solarize":
        return [*levels, 0.5, 100, 127.9, 255]
    if name == "posterize":
        return list(range(1, 9))
    return [0.0]


@pytest.mark.parametrize("name", list(OURS))
@pytest.mark.parametrize(("height", "width"), [(SIZE, SIZE), (21, 37)])
def test_every_pixel_is_pillow_s(name, height, width):
    images = pictures(height=height, width=width)
    for amount in amounts(name):
        ours = OURS[name](images, torch.full((len(images),), amount, dtype=torch.float64))
        theirs = torch.stack(
            [from_pillow(PILLOW[name](to_pillow(image), amount)) for image in images]
        )
        assert ours.dtype == torch.uint8
        assert torch.equal(ours, theirs), f"{name}({amount}): {(ours != theirs).sum()} differ"


@pytest.mark.parametrize("change", [apply, apply_by_group])
def test_all_operations_in_one_batch_are_pillow_s(change):
    rng = np.random.default_rng(1)
    images = pictures(180)
    names = [OPERATIONS[i % len(OPERATIONS)] for i in range(len(images))]
    drawn = [float(rng.choice(amounts(name))) for name in names]
    shares = [
        amount / SIZE if name.startswith("translate") else amount
        for name, amount in zip(names, drawn, strict=True)
    ]
    ours = change(
        images,
        torch.tensor([OPERATIONS.index(name) for name in names]),
        torch.tensor(shares, dtype=torch.float64),
    )
    for name, amount, image, result in zip(names, drawn, images, ours, strict=True):
        expected = from_pillow(PILLOW[name](to_pillow(image), amount))
        assert torch.equal(result, expected), f"{name}({amount})"


def test_the_whole_of_autoaugment_is_pillow_s_on_the_same_choice():
    images = pictures(300)
    draw = Draw(seed=5, epoch=2, samples=torch.arange(1000, 1300))
    choice = AutoAugment().choose(draw)
    ours = AutoAugment()(images, draw)
    for i, result in enumerate(ours):
        expected = to_pillow(images[i])
        for operation, amount in zip(choice.operation[i], choice.amount[i], strict=True):
            name = OPERATIONS[operation]
            scale = SIZE if name.startswith("translate") else 1
            expected = PILLOW[name](expected, float(amount) * scale)
        assert torch.equal(result, from_pillow(expected)), i


@pytest.fixture(scope="module")
def many():
    return AutoAugment().choose(Draw(seed=3, epoch=1, samples=torch.arange(100_000)))


def test_sub_policies_are_equally_frequent(many):
    counts = torch.bincount(many.policy, minlength=25).double()
    assert len(counts) == 25
    # 24 degrees of freedom: a chi-square above 52 has a chance of less than one in a thousand.
    assert float(((counts - 4000) ** 2 / 4000).sum()) < 52


def test_probabilities_operations_and_amounts_are_the_policy_s(many):
    for index, pair in enumerate(POLICIES["cifar10"]):
        of_this = many.policy == index
        for place, step in enumerate(pair):
            operation = many.operation[of_this, place]
            applied = operation != 0
            assert float(applied.double().mean()) == pytest.approx(step.probability, abs=0.03)
            assert set(operation[applied].tolist()) <= {OPERATIONS.index(step.operation)}
            level = magnitude(step.operation, step.level)
            base = float(step.operation in ENHANCED)
            signed = step.operation in SIGNED + ENHANCED
            amount = many.amount[of_this, place]
            allowed = {base + level, base - level} if signed else {level}
            assert set(amount.tolist()) == allowed, step
            if len(allowed) == 2:
                assert float((amount > base).double().mean()) == pytest.approx(0.5, abs=0.04)


def test_the_two_steps_of_a_sub_policy_are_drawn_apart(many):
    both = (many.operation != 0)[many.policy == 16]
    first, second = POLICIES["cifar10"][16]
    share = float(both.all(1).double().mean())
    assert share == pytest.approx(first.probability * second.probability, abs=0.02)


def test_the_policy_has_every_operation_but_shear_x_and_all_levels_are_levels():
    steps = [step for pair in POLICIES["cifar10"] for step in pair]
    assert len(steps) == 50
    used = {step.operation for step in steps}
    assert {*OPERATIONS} - used == {"identity", "shear_x"}
    assert all(0 <= step.level <= 9 and 0 <= step.probability <= 1 for step in steps)


def test_bad_input_is_refused():
    draw = Draw(0, 0, torch.arange(2))
    with pytest.raises(QuadspikeError, match="uint8 images"):
        AutoAugment()(torch.zeros(2, 3, 8, 8), draw)
    with pytest.raises(QuadspikeError, match="uint8 images"):
        AutoAugment()(torch.zeros(2, 1, 8, 8, dtype=torch.uint8), draw)
    with pytest.raises(QuadspikeError, match="did you mean 'cifar10'"):
        AutoAugment("cifar")


@pytest.mark.gpu
def test_it_is_the_same_on_the_gpu_and_in_a_graph():
    images = pictures(64).cuda()
    samples = torch.arange(64, device="cuda")
    epoch = torch.zeros((), dtype=torch.int64, device="cuda")
    augment = AutoAugment()
    augment(images, Draw(0, epoch, samples))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = augment(images, Draw(0, epoch, samples))
    for number in range(3):
        epoch.fill_(number)
        graph.replay()
        expected = augment(images.cpu(), Draw(0, number, samples.cpu()))
        assert torch.equal(result.cpu(), expected)
