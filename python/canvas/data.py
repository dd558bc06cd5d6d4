"""The images that a search trains on, in three fixed splits.

    digits             1797 scans of handwritten digits, 8x8, that come with scikit-learn
    digits-scattered   the same scans on a 16x16 field, a task that *needs* spatial mixing:

        +----------------+      four 4x4 fragments of other scans of the same split are pasted at
        random |  ##            |      places, then the whole 8x8 scan over them at a random
        place.  Knowing which |  ## ........   |      grey values occur no longer helps: a
        network must see what lies beside what, |     .digit .   |      and wherever it lies.
        Each scan is placed three times. |  ## ........   | |  ##        ##  | +----------------+

Scans are split 60/20/20 % into train, validation and test, by class, before anything is pasted,
so that no scan (and no fragment of one) is in two splits.  Everything follows from one seed.
Plain digits cannot tell a kernel from nothing: networks without any spatial mixing come within
two points of the convolution there.

The search trains on train and scores on validation; test is kept for the very end and nothing
here looks at it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from .augment import Augmentation
from .errors import CanvasError

FIELD = 16  # side of the field of digits-scattered
FRAGMENT = 4  # side of a pasted fragment
FRAGMENTS = 4  # fragments per field
PLACEMENTS = 3  # times that each scan is placed
SPLITS = ("train", "validation", "test")
SHARES = (0.6, 0.2, 0.2)
DATA_SEED = 0  # the splits are part of the task: they do not change with the seed of a search

FACTS = ("name", "classes", "description", "mean", "deviation", "synthetic")  # beside the images

Split = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Data:
    """Images and labels of three splits.

    Each split is (images [N, C, H, W] float32, labels [N] int64 in 0..classes-1).  `checksum` is
    the sha256 of all of it, `description` says what it is.  `mean` and `deviation` say by what
    each channel was normalised (() = not at all), `augmentation` what a training does to its
    batches, and `synthetic` that no image was ever taken of anything.
    """

    name: str
    train: Split
    validation: Split
    test: Split
    classes: int
    description: str
    checksum: str = field(default="", compare=False)
    augmentation: Augmentation = Augmentation()
    mean: tuple[float, ...] = ()
    deviation: tuple[float, ...] = ()
    synthetic: bool = False

    def __post_init__(self) -> None:
        for split in SPLITS:
            self._check(split)
        if not self.checksum:
            object.__setattr__(self, "checksum", self._digest())

    @property
    def shape(self) -> tuple[int, int, int]:
        """(channels, height, width) of one image."""
        channels, height, width = self.train[0].shape[1:]
        return channels, height, width

    def save(self, path: Path) -> None:
        """Write to `path` as plain arrays (numpy .npz, nothing pickled), at once or not at
        all.
        """
        arrays = {}
        for split in SPLITS:
            images, labels = getattr(self, split)
            arrays[f"{split}_images"] = images.numpy()
            arrays[f"{split}_labels"] = labels.numpy()
        facts = {name: getattr(self, name) for name in FACTS}
        facts["augmentation"] = asdict(self.augmentation)
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        with open(temporary, "wb") as file:
            np.savez(file, facts=np.array(json.dumps(facts)), **arrays)
        os.replace(temporary, path)

    @classmethod
    def read(cls, path: Path) -> Data:
        """Read what `save` wrote."""
        with np.load(path, allow_pickle=False) as arrays:
            facts = json.loads(str(arrays["facts"]))
            train, validation, test = (
                (
                    torch.from_numpy(arrays[f"{split}_images"]),
                    torch.from_numpy(arrays[f"{split}_labels"]),
                )
                for split in SPLITS
            )
        facts["augmentation"] = Augmentation(**facts["augmentation"])
        facts["mean"], facts["deviation"] = tuple(facts["mean"]), tuple(facts["deviation"])
        return cls(train=train, validation=validation, test=test, **facts)

    def _check(self, split: str) -> None:
        images, labels = getattr(self, split)
        if images.ndim != 4 or images.dtype != torch.float32:
            raise CanvasError(f"the images of split '{split}' must be float32 [N, C, H, W]")
        if labels.dtype != torch.int64 or labels.shape != images.shape[:1] or len(labels) == 0:
            raise CanvasError(f"the labels of split '{split}' must be int64, one per image")
        if int(labels.min()) < 0 or int(labels.max()) >= self.classes:
            raise CanvasError(f"the labels of split '{split}' must be 0 to {self.classes - 1}")

    def _digest(self) -> str:
        digest = hashlib.sha256()
        for split in SPLITS:
            for tensor in getattr(self, split):
                digest.update(f"{split} {tensor.dtype} {list(tensor.shape)}\n".encode())
                digest.update(np.ascontiguousarray(tensor.numpy()).tobytes())
        return digest.hexdigest()


def load_data(name: str, seed: int = DATA_SEED) -> Data:
    """The data set called `name`; raises CanvasError with one sentence for a name that does not
    exist.
    """
    if name not in READERS:
        raise CanvasError(f"no data is called '{name}': there are {' and '.join(READERS)}")
    return READERS[name](seed)


def digits(seed: int = DATA_SEED) -> Data:
    """scikit-learn's scans as they are: 1 x 8 x 8, ten classes."""
    scans, labels = _scans()
    parts = _split(labels, np.random.default_rng(seed))
    return _assemble(
        "digits",
        "1797 scans of handwritten digits, 8x8, split 60/20/20 % by class",
        [(scans[part], labels[part]) for part in parts],
    )


def digits_scattered(seed: int = DATA_SEED) -> Data:
    """The scans on a 16 x 16 field among fragments of others: 1 x 16 x 16, ten classes."""
    scans, labels = _scans()
    random = np.random.default_rng(seed)
    parts = _split(labels, random)
    return _assemble(
        "digits-scattered",
        "1797 scans of handwritten digits, split 60/20/20 % by class, each placed three "
        "times on a 16x16 field over four 4x4 fragments of other scans of its split",
        [_scatter(scans[part], labels[part], random) for part in parts],
    )


def _scans() -> tuple[np.ndarray, np.ndarray]:
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise CanvasError(
            'data "digits" comes with scikit-learn, not installed here: pip install scikit-learn'
        ) from error
    bunch = load_digits()
    return bunch.images.astype(np.float32) / 16, bunch.target.astype(np.int64)


def _split(labels: np.ndarray, random: np.random.Generator) -> list[np.ndarray]:
    """Indices of train, validation and test, each class divided by the shares."""
    parts: list[list[int]] = [[] for _ in SPLITS]
    for label in np.unique(labels):
        members = random.permutation(np.flatnonzero(labels == label))
        first = round(SHARES[0] * len(members))
        second = first + round(SHARES[1] * len(members))
        for part, chosen in zip(parts, np.split(members, [first, second])):
            part.extend(int(index) for index in chosen)
    return [np.array(sorted(part)) for part in parts]


def _scatter(
    scans: np.ndarray, labels: np.ndarray, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Place every scan PLACEMENTS times; scans [n, 8, 8] in, fields [n*PLACEMENTS, 16, 16]
    out.
    """
    count, side = scans.shape[0], scans.shape[1]
    fields = np.zeros((count * PLACEMENTS, FIELD, FIELD), np.float32)
    for i, canvas in enumerate(fields):
        own = i % count
        for _ in range(FRAGMENTS):
            other = (own + int(random.integers(1, count))) % count
            y, x = random.integers(0, side - FRAGMENT + 1, 2)
            v, u = random.integers(0, FIELD - FRAGMENT + 1, 2)
            canvas[v : v + FRAGMENT, u : u + FRAGMENT] = scans[
                other, y : y + FRAGMENT, x : x + FRAGMENT
            ]
        v, u = random.integers(0, FIELD - side + 1, 2)
        canvas[v : v + side, u : u + side] = scans[own]
    return fields, np.tile(labels, PLACEMENTS)


def _assemble(name: str, description: str, parts: list[tuple[np.ndarray, np.ndarray]]) -> Data:
    train, validation, test = (
        (torch.from_numpy(images)[:, None].contiguous(), torch.from_numpy(labels))
        for images, labels in parts
    )
    return Data(name, train, validation, test, classes=10, description=description)


READERS: dict[str, Callable[[int], Data]] = {
    "digits": digits,
    "digits-scattered": digits_scattered,
}
