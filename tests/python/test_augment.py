"""Flips and shifts of a batch: what a loop over the images would do, from a generator alone."""

import dataclasses

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from canvas.data import Data
from canvas.data.augment import Augmentation, generator
from canvas.training.train import train


def batch(count=64, channels=2, height=6, width=5):
    return torch.rand(count, channels, height, width, generator=torch.Generator().manual_seed(0))


def readings(image, augmentation):
    """Every image that `augmentation` may make of `image`, by (flip, y, x)."""
    crop, (height, width) = augmentation.crop, image.shape[-2:]
    padded = F.pad(image, (crop,) * 4)
    for y in range(2 * crop + 1):
        for x in range(2 * crop + 1):
            window = padded[:, y : y + height, x : x + width]
            yield (False, y, x), window
            if augmentation.flip:
                yield (True, y, x), window.flip(-1)


@pytest.mark.parametrize(
    "augmentation", [Augmentation(*a) for a in [(True, 0), (False, 1), (True, 2)]]
)
def test_each_image_is_flipped_and_shifted_on_its_own(augmentation):
    images = batch()
    changed = augmentation.apply(images, generator(1))
    assert changed.shape == images.shape
    seen = set()
    for before, after in zip(images, changed):
        hits = [how for how, image in readings(before, augmentation) if torch.equal(image, after)]
        assert len(hits) == 1
        seen.add(hits[0])
    wanted = {how for how, _ in readings(images[0], augmentation)}
    assert seen <= wanted and len(seen) > len(wanted) / 2


def test_the_generator_decides_alone():
    images, both = batch(), Augmentation(flip=True, crop=2)
    torch.manual_seed(1)
    first = both.apply(images, generator(7))
    torch.manual_seed(2)
    assert torch.equal(first, both.apply(images, generator(7)))
    assert not torch.equal(first, both.apply(images, generator(8)))
    going_on = generator(7)
    both.apply(images, going_on)
    assert not torch.equal(first, both.apply(images, going_on))


def test_nothing_to_do_is_nothing_done():
    images, random = batch(), generator(1)
    before = random.get_state()
    assert Augmentation().apply(images, random) is images
    assert torch.equal(random.get_state(), before)


class Watch(nn.Module):
    """A linear network that keeps what it was shown."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2 * 6 * 5, 2)
        self.shown = {True: [], False: []}

    def forward(self, x):
        self.shown[self.training].append(x.clone())
        return self.layer(x.flatten(1))


def trained(augmentation=None):
    images = batch()
    split = (images, torch.arange(64) % 2)
    data = Data("tiny", split, split, split, 2, "")
    if augmentation is not None:
        data = dataclasses.replace(data, augmentation=augmentation)
    torch.manual_seed(0)
    watch = Watch()
    train(watch, data, 2, seed=3, batch_size=64)
    return watch


def test_training_sees_changed_images_in_the_same_order_and_scoring_does_not():
    plain, changed = trained(), trained(Augmentation(flip=True, crop=1))
    for before, after in zip(plain.shown[True], changed.shown[True], strict=True):
        for image, other in zip(before, after):
            assert any(
                torch.equal(reading, other)
                for _, reading in readings(image, Augmentation(flip=True, crop=1))
            )
    assert not torch.equal(plain.shown[True][0], changed.shown[True][0])
    for before, after in zip(plain.shown[False], changed.shown[False], strict=True):
        assert torch.equal(before, after)


def test_without_augmentation_the_images_come_as_they_are_and_in_the_order_of_the_seed():
    shuffle = torch.Generator().manual_seed(3)
    shown = trained().shown[True]
    for epoch in range(2):
        assert torch.equal(shown[epoch], batch()[torch.randperm(64, generator=shuffle)])
