"""The scans of handwritten digits that come with scikit-learn, as they are or on a larger field.

    digits             1797 scans, 8x8
    digits-scattered   the same scans on a 16x16 field, a task that *needs* spatial mixing

Four 4x4 fragments of other scans of the same split are pasted at random places, then the whole 8x8
scan over them at a random place; each scan is placed several times:

    +----------------+
    |  ##            |     ##   a fragment of another scan
    |  ##   ........ |
    |       . the  . |
    |    ## . scan . |     which grey values occur no longer helps: a network must see
    |    ## ........ |     what lies beside what, wherever it lies
    |  ##        ##  |
    |  ##        ##  |
    +----------------+

Scans are split 60/20/20 % into train, validation and test, by class, before anything is pasted, so
that no scan (and no fragment of one) is in two splits.  Everything follows from one seed.
`test_groups` marks the test images that are placements of one scan: they are no independent
observations.  A test scan has more of them, so that where it lies matters less for its score.
Plain digits do not show whether a kernel does anything: networks without any spatial mixing come
within two points of the convolution there.  Neither is ever mirrored: that would be no digit.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import torch

from ..errors import CanvasError
from .dataset import SPLITS, Data, Split
from .images import DATA_SEED, Requested, finish, pick

FIELD = 16  # side of the field of digits-scattered
FRAGMENT = 4  # side of a pasted fragment
FRAGMENTS = 4  # fragments per field
PLACEMENTS = {"train": 3, "validation": 3, "test": 10}  # times that each scan is placed
SHARES = (0.6, 0.2, 0.2)


def digits(name: str, path: str, requested: Requested, seed: int = DATA_SEED) -> Data:
    """scikit-learn's scans as they are: 1 x 8 x 8, ten classes."""
    scans, labels = _scans()
    parts = _split(labels, np.random.default_rng(seed))
    return _finish(
        name,
        "1797 scans of handwritten digits, 8x8, split 60/20/20 % by class",
        [(scans[part], labels[part]) for part in parts],
        requested,
    )


def digits_scattered(name: str, path: str, requested: Requested, seed: int = DATA_SEED) -> Data:
    """The scans on a 16 x 16 field among fragments of others: 1 x 16 x 16, ten classes."""
    scans, labels = _scans()
    random = np.random.default_rng(seed)
    parts = _split(labels, random)
    return _finish(
        name,
        "1797 scans of handwritten digits, split 60/20/20 % by class, each placed three "
        "times (test: ten) on a 16x16 field over four 4x4 fragments of other scans of its split",
        [
            _scatter(scans[part], labels[part], PLACEMENTS[split], random)
            for split, part in zip(SPLITS, parts)
        ],
        requested,
        PLACEMENTS["test"],
    )


def _scans() -> tuple[np.ndarray, np.ndarray]:
    table = _table()
    images = table[:, :64].reshape(-1, 8, 8)
    return images.astype(np.float32) / 16, table[:, 64].astype(np.int64)


def _table() -> np.ndarray:
    """A row of 64 pixels and a label for each scan. Importing scikit-learn takes longer
    than all else that a search begins with, so that its file is read where it is known to be.
    """
    found = importlib.util.find_spec("sklearn")
    if found is None:
        raise CanvasError(
            'data "digits" comes with scikit-learn, not installed here: pip install scikit-learn'
        )
    for folder in found.submodule_search_locations or []:
        file = Path(folder, "datasets", "data", "digits.csv.gz")
        if file.is_file():
            return np.loadtxt(file, delimiter=",")
    from sklearn.datasets import load_digits

    return np.column_stack(load_digits(return_X_y=True))


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
    scans: np.ndarray, labels: np.ndarray, placements: int, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Place every scan so often; scans [n, 8, 8] in, fields [placements*n, 16, 16] out: all
    scans once, then all once more, ...
    """
    count, side = scans.shape[0], scans.shape[1]
    fields = np.zeros((count * placements, FIELD, FIELD), np.float32)
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
    return fields, np.tile(labels, placements)


def _finish(
    name: str,
    description: str,
    parts: list[tuple[np.ndarray, np.ndarray]],
    requested: Requested,
    placements: int = 1,  # of each test scan
) -> Data:
    requested.reject("image_size", name, "comes in one size")
    requested.reject("flip", name, "would mean something else when mirrored")
    sources: dict[str, Split] = {
        source: (torch.from_numpy(images)[:, None], torch.from_numpy(labels))
        for source, (images, labels) in zip(SPLITS, parts)
    }
    splits = pick(sources, [str(digit) for digit in range(10)], requested)
    images = len(splits[2][1])
    groups = [i % (images // placements) for i in range(images)] if placements > 1 else []
    return finish(name, description, splits, 10, requested, test_groups=groups)
