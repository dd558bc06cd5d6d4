"""Made-up images whose classes differ only in how neighbouring pixels lie.

A class is a direction: of 10, 18 degrees apart.  An image is stripes in that direction of random
wavelength and phase, in noise:

    class 0  |||||||     class 2  ///////     class 5  =======     ...

Then each pixel is replaced by its rank within the image.  So every image has exactly the same grey
values, each exactly once, and only their places differ: a network that looks at single pixels and
averages has the same output for all images, and cannot do better than chance.  Measured: three
epochs of one convolution and the mean over all pixels give 10 % with a 1x1 window, 56 % with 3x3,
83 % with 5x5 and 90 % with 7x7.  (resnet8 still pools, and keeps its first 3x3, where all its
other convolutions become 1x1: six epochs give 60 % instead of 86 %.)

The images are grey in three equal channels, because networks expect three.  They say nothing about
photographs, and whoever reports a number on them must say `synthetic`.
"""

from __future__ import annotations

import numpy as np
import torch

from .dataset import SPLITS, Data, Split
from .images import DATA_SEED, Requested, check_memory, counted, finish, pick

CLASSES = 10
PER_CLASS = {"train": 300, "validation": 100, "test": 100}
SIDE = 16
WAVELENGTHS = (3.0, 8.0)  # pixels
NOISE = 2.0  # deviation, where the stripes' is 0.7


def read_synthetic(name: str, path: str, requested: Requested) -> Data:
    """Striped images of ten directions, 3 x side x side."""
    requested.reject("flip", name, "would show another class when mirrored")
    side = requested.image_size or SIDE
    check_memory(CLASSES * sum(PER_CLASS.values()), (3, side, side))
    random = np.random.default_rng(DATA_SEED)
    sources: dict[str, Split] = {part: _stripes(PER_CLASS[part], side, random) for part in SPLITS}
    splits = pick(sources, [str(label) for label in range(CLASSES)], requested)
    description = f"synthetic stripes in noise: {counted(splits, CLASSES, sources)}"
    return finish(name, description, splits, CLASSES, requested, synthetic=True)


def _stripes(per_class: int, side: int, random: np.random.Generator) -> Split:
    """(float32 [N, 3, side, side] in 0..1, labels [N])."""
    labels = np.tile(np.arange(CLASSES), per_class)
    angle = (np.pi / CLASSES * labels)[:, None, None]
    wavelength, phase = (
        random.uniform(low, high, (len(labels), 1, 1))
        for low, high in (WAVELENGTHS, (0, 2 * np.pi))
    )
    y, x = np.mgrid[:side, :side]
    along = np.cos(angle) * x + np.sin(angle) * y
    fields = np.sin(2 * np.pi * along / wavelength + phase)
    fields += random.normal(0, NOISE, fields.shape)
    images = _ranks(fields.reshape(len(labels), -1)).reshape(-1, 1, side, side)
    return torch.from_numpy(images).repeat(1, 3, 1, 1), torch.from_numpy(labels)


def _ranks(values: np.ndarray) -> np.ndarray:
    """Each row's values by their rank, 0 to 1, float32."""
    ranks = values.argsort(axis=1, kind="stable").argsort(axis=1)
    return ranks.astype(np.float32) / (values.shape[1] - 1)
