"""Images and labels in three splits: what every reader of data gives and every training takes.

The search trains on train and scores on validation; test is kept for the very end and nothing
here looks at it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..errors import CanvasError
from .augment import Augmentation
from .batches import Splits

SPLITS = ("train", "validation", "test")

Split = tuple[Any, Tensor]


@dataclass(frozen=True)
class Data(Splits):
    """Images and labels of three splits.

    Each split is (images [N, C, H, W] float32, labels [N] int64 in 0..classes-1); the images may
    stay in files (FileImages), which `listed` then has.  `checksum` is the sha256 of all of it,
    `description` a text for people.  `mean` and `deviation` normalised each channel (() = not
    normalised), `augmentation` is what a training does to its batches, and `synthetic` means that
    no image was ever taken of anything.  `test_groups` marks test images of the same thing, such
    as placements of one scan, by a number for each image, equal within a group (() = every image
    is a group of its own).
    """

    name: str
    train: Split
    validation: Split
    test: Split
    classes: int
    description: str
    checksum: str = field(default="", compare=False)
    augmentation: Augmentation = field(default_factory=Augmentation)
    mean: tuple[float, ...] = ()
    deviation: tuple[float, ...] = ()
    synthetic: bool = False
    test_groups: tuple[int, ...] = ()
    listed: Any = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        for split in SPLITS:
            self._check(split)
        if self.test_groups and len(self.test_groups) != len(self.test[1]):
            raise CanvasError("test_groups must have one number per test image")
        if not self.checksum:
            object.__setattr__(self, "checksum", self._digest())

    @property
    def shape(self) -> tuple[int, int, int]:
        """(channels, height, width) of one image."""
        channels, height, width = self.train[0].shape[1:]
        return channels, height, width

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
            for part in getattr(self, split):
                digest.update(f"{split} {part.dtype} {list(part.shape)}\n".encode())
                if isinstance(part, Tensor):
                    digest.update(np.ascontiguousarray(part.numpy()))
                else:
                    part.update(digest)
        return digest.hexdigest()
