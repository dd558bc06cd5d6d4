"""Images and labels in three splits: what every reader of data gives and every training takes.

The search trains on train and scores on validation; test is kept for the very end and nothing
here looks at it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ..errors import CanvasError, one_line
from ..files import at_once
from .augment import Augmentation

SPLITS = ("train", "validation", "test")
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
    augmentation: Augmentation = field(default_factory=Augmentation)
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
        with at_once(path) as file:
            np.savez(file, facts=np.array(json.dumps(facts)), **arrays)

    @classmethod
    def read(cls, path: Path) -> Data:
        """Read what `save` wrote; CanvasError where the file is something else."""
        try:
            return cls._read(path)
        except CanvasError:
            raise
        except Exception as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # the system's: no such file, no permission
            raise CanvasError(f"the images in '{path}' are damaged: {one_line(error)}") from error

    @classmethod
    def _read(cls, path: Path) -> Data:
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
                digest.update(np.ascontiguousarray(tensor.numpy()))
        return digest.hexdigest()
