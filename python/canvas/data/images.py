"""The steps that all readers of images share, in the order in which a reader takes them.

    Requested       the options of the user; None stands for the reader's default
    split           which image goes into which split, at most so many of them
    check_memory    reject what this machine could not hold, before anything is decoded
    finish          0..255 -> 0..1 -> normalised, and the Data with what a training does to it

Photographs are normalised, flipped and shifted by an eighth of their side unless options differ;
everything else is taken as it is.  Which image is in which split follows from one fixed seed: the
splits are part of the task and do not change with the seed of a search.
"""

from __future__ import annotations

import math
import os
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..arguments import shown
from ..errors import CanvasError
from ..text import printable
from .augment import Augmentation
from .dataset import SPLITS, Data, Split

DATA_SEED = 0
VALIDATION_SHARE = 0.1  # of the training images, where no validation images are given
TEST_SHARE = 0.2  # of all images, where no others are given
LIMITS = {"image_size": (4, 4096), "images": (2, 100_000_000), "crop": (0, 1024)}
CROP_SHARE = 8  # photographs are shifted by up to 1/8 of their side
CHUNK = 1024  # images at a time where a copy of all would be too many
CHUNK_BYTES = 64 << 20  # of their numbers, at most
DIGITS = 4  # decimals of mean and deviation: the same on every machine, and as people quote them

Groups = list[np.ndarray]  # indices of images, one array per class


@dataclass(frozen=True)
class Requested:
    """What the user asks of a reader; None leaves it to the reader.

    `image_size` is the side in pixels, `images` the largest number of training images (validation
    included; the same share of each class), `normalize` and `flip` are yes or no, `crop` is the
    largest shift in pixels.  `beside`: a folder that an earlier call may have kept an index in.
    Raises CanvasError with one message for a value that cannot be.
    """

    image_size: int | None = None
    images: int | None = None
    normalize: bool | None = None
    flip: bool | None = None
    crop: int | None = None
    beside: Path | None = None

    def __post_init__(self) -> None:
        for name, (low, high) in LIMITS.items():
            value = getattr(self, name)
            whole = isinstance(value, int) and not isinstance(value, bool)
            if value is not None and not (whole and low <= value <= high):
                raise CanvasError(
                    f"{name} must be a whole number from {low} to {high}, not {shown(value)}"
                )
        for name in ("normalize", "flip"):
            if getattr(self, name) not in (None, True, False):
                raise CanvasError(
                    f"{name} must be True or False, not {shown(getattr(self, name))}"
                )

    def reject(self, name: str, data: str, why: str) -> None:
        """Raise CanvasError where option `name` was requested and `data` cannot have it."""
        if getattr(self, name):
            raise CanvasError(f"data '{data}' {why}: leave {name} out")


def quoted(name: object) -> str:
    """'name' for a message, with what a terminal cannot show escaped."""
    return f"'{printable(str(name))}'"


def split(
    labels: Mapping[str, np.ndarray], names: Sequence[str], requested: Requested
) -> list[tuple[str, np.ndarray]]:
    """For train, validation and test: the source of its images, and which of them, sorted.

    `labels` gives the sources that are there, "train" always, "validation" and "test" perhaps: for
    each image a whole number that indexes `names`.  Without "test" a fifth of each class of train
    becomes that, without "validation" then a tenth of what is left.  `requested.images` bounds
    train and validation together.  Raises CanvasError where a class has too few images.
    """
    random = np.random.default_rng(DATA_SEED)
    groups = {
        source: [random.permutation(np.flatnonzero(of == label)) for label in range(len(names))]
        for source, of in labels.items()
    }
    train, validation, test = (groups.get(part, []) for part in SPLITS)
    if not test:
        test, train = _cut(train, TEST_SHARE, "test", names)
    if requested.images is not None:
        kept = _cap(train + validation, requested.images, names, 1 if validation else 2)
        train, validation = kept[: len(names)], kept[len(names) :]
    if not validation:
        validation, train = _cut(train, VALIDATION_SHARE, "validation", names)
    return [
        (part if part in labels else "train", np.sort(np.concatenate(chosen)))
        for part, chosen in zip(SPLITS, (train, validation, test))
    ]


def pick(sources: Mapping[str, Split], names: Sequence[str], requested: Requested) -> list[Split]:
    """Train, validation and test of images that are in memory; see `split`."""
    parts = split({source: of.numpy() for source, (_, of) in sources.items()}, names, requested)
    return [(sources[source][0][chosen], sources[source][1][chosen]) for source, chosen in parts]


def _cut(groups: Groups, share: float, what: str, names: Sequence[str]) -> tuple[Groups, Groups]:
    """(`share` of each class, at least one image; the rest)."""
    for name, group in zip(names, groups):
        if len(group) < 2:
            raise CanvasError(
                f"class {quoted(name)} has too few training images for {what} images to be cut "
                f"from them: give it more, or {what} images of their own"
            )
    sizes = [max(1, round(share * len(group))) for group in groups]
    return (
        [group[:size] for group, size in zip(groups, sizes)],
        [group[size:] for group, size in zip(groups, sizes)],
    )


def _cap(groups: Groups, images: int, names: Sequence[str], least: int) -> Groups:
    """The same share of each group, `images` in all; each keeps at least `least`."""
    sizes = [len(group) for group in groups]
    total = sum(sizes)
    if images >= total:
        return groups
    quotas = [images * size // total for size in sizes]
    by_remainder = sorted(range(len(sizes)), key=lambda i: (-(images * sizes[i] % total), i))
    for i in by_remainder[: images - sum(quotas)]:
        quotas[i] += 1
    for i, (quota, size) in enumerate(zip(quotas, sizes)):
        if quota < min(least, size):
            name = names[i % len(names)]
            raise CanvasError(
                f"{images} images would leave {quota} of the {size} of class {quoted(name)}: "
                f"ask for at least {math.ceil(least * total / min(filter(None, sizes)))}"
            )
    return [group[:quota] for group, quota in zip(groups, quotas)]


def check_memory(count: int, shape: tuple[int, int, int]) -> None:
    """Reject `count` images of `shape` that would take more than half of this machine's memory."""
    half = machine_memory() // 2
    needed = 4 * count * math.prod(shape)
    if needed > half:
        raise CanvasError(
            f"{count} images of {shape[1]}x{shape[2]} would take {needed / 1e9:.1f} GB, more than "
            f"half of this machine's memory ({half / 1e9:.1f} GB): take fewer with --images or "
            "smaller ones with --image-size, or stream them from a Dataset (canvas.stream)"
        )


def machine_memory() -> int:
    """Bytes of memory that this machine has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def finish(
    name: str,
    description: str,
    splits: Sequence[Split],
    classes: int,
    requested: Requested,
    *,
    photographs: bool = False,
    synthetic: bool = False,
    test_groups: Sequence[int] = (),
) -> Data:
    """The Data of three splits of (images [N, C, H, W], uint8 or float32; labels [N] int64).

    uint8 means 0..255; float32 images are normalised in place.  `photographs` decides where
    `requested` say nothing, `test_groups` which test images show
    the same thing.  What is done to the images is added to `description`.
    """
    scaled = [(scale(images), labels) for images, labels in splits]
    mean: tuple[float, ...] = ()
    deviation: tuple[float, ...] = ()
    if wants_normalized(requested, photographs):
        train = scaled[0][0]
        mean, deviation = moments(train.split(chunk_of(train)))
        for images, _ in scaled:
            normalize(images, mean, deviation)
    return complete(
        name, description, scaled, classes, requested, (mean, deviation),
        photographs=photographs, synthetic=synthetic, test_groups=test_groups,
    )  # fmt: skip


def wants_normalized(requested: Requested, photographs: bool) -> bool:
    return photographs if requested.normalize is None else requested.normalize


def complete(
    name: str,
    description: str,
    splits: Sequence[Any],
    classes: int,
    requested: Requested,
    normalized: tuple[tuple[float, ...], tuple[float, ...]],
    *,
    photographs: bool = False,
    synthetic: bool = False,
    test_groups: Sequence[int] = (),
) -> Data:
    """The Data of splits whose images are numbers already, `normalized` by this mean and
    deviation.
    """
    mean, deviation = normalized
    augmentation = _augmentation(requested, splits[0][0].shape[-1], photographs)
    treatment = ["normalised per channel"] * bool(mean) + augmentation.words()
    train, validation, test = splits
    return Data(
        name,
        train,
        validation,
        test,
        classes,
        "; ".join([description, *treatment]),
        augmentation=augmentation,
        mean=mean,
        deviation=deviation,
        synthetic=synthetic,
        test_groups=tuple(test_groups),
    )


def counted(splits: Sequence[Any], classes: int, sources: Container[str]) -> str:
    """`900 training, 100 validation (cut from train) and 200 test images of 10 classes, 32x32`."""
    train, validation, test = (
        f"{len(labels)} {word}" + " (cut from train)" * (part not in sources)
        for part, word, (_, labels) in zip(SPLITS, ("training", "validation", "test"), splits)
    )
    height, width = splits[0][0].shape[-2:]
    return f"{train}, {validation} and {test} images of {classes} classes, {height}x{width}"


def scale(images: Tensor) -> Tensor:
    """Bytes as float32 in 0..1; float32 as it is."""
    return images if images.dtype == torch.float32 else images.float().div_(255)


def normalize(images: Tensor, mean: Sequence[float], deviation: Sequence[float]) -> None:
    """Subtract each channel's mean and divide by its deviation, in place."""
    images -= torch.tensor(mean, device=images.device)[:, None, None]
    images /= torch.tensor(deviation, device=images.device)[:, None, None]


def _augmentation(requested: Requested, side: int, photographs: bool) -> Augmentation:
    crop = side // CROP_SHARE * photographs if requested.crop is None else requested.crop
    if crop > side // 2:
        raise CanvasError(f"crop must be at most half of the images' side of {side}, not {crop}")
    return Augmentation(photographs if requested.flip is None else requested.flip, crop)


def chunk_of(images: Any) -> int:
    """How many images are changed or summed at a time."""
    return max(1, min(CHUNK, CHUNK_BYTES // (4 * math.prod(images.shape[1:]))))


def moments(chunks: Iterable[Tensor]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and deviation per channel of training images.  A channel that is the same everywhere is
    to be shifted only.
    """
    count, total, squares = 0, torch.zeros(1), torch.zeros(1)
    for chunk in chunks:
        count += chunk.numel() // chunk.shape[1]
        total = total + chunk.double().sum((0, 2, 3))
        squares = squares + chunk.double().square().sum((0, 2, 3))
    variance = (squares / count - (total / count).square()).clamp(min=0)
    mean = [round(value, DIGITS) for value in (total / count).tolist()]
    deviation = [round(value, DIGITS) or 1.0 for value in variance.sqrt().tolist()]
    return tuple(mean), tuple(deviation)
