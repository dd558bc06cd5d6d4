"""Images that stay on a device while a network is trained there, where they fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .batches import LazySplits, Splits
from .images import normalize, scale
from .stored import MappedImages

PART = 8  # a data set takes at most one in so many of a device's bytes


@dataclass(frozen=True)
class DeviceImages:
    """Images [N, C, H, W], bytes or numbers, on a device: `images[index]` are float32 there."""

    kept: Tensor
    mean: tuple[float, ...] = ()
    deviation: tuple[float, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.kept.shape)

    def __len__(self) -> int:
        return len(self.kept)

    def __getitem__(self, index: Any) -> Tensor:
        chosen = self.kept[index.to(self.kept.device) if torch.is_tensor(index) else index]
        if chosen.dtype != torch.uint8:
            return chosen.clone()
        numbers = scale(chosen)
        if self.mean:
            normalize(numbers, self.mean, self.deviation)
        return numbers

    def split(self, size: int) -> Iterator[Tensor]:
        return (self[start : start + size] for start in range(0, len(self), size))


class Resident(LazySplits):
    """The splits of `source` with their images on a device."""

    def __init__(self, source: Splits, place: torch.device) -> None:
        self.source, self.place = source, place
        self.augmentation = source.augmentation

    def count(self, split: str) -> int:
        return self.source.count(split)

    def _split(self, part: str) -> tuple[DeviceImages, Tensor]:
        images, labels = getattr(self.source, part)
        mean: tuple[float, ...] = ()
        deviation: tuple[float, ...] = ()
        if isinstance(images, MappedImages):
            mean, deviation = images.mean, images.deviation
            images = torch.from_numpy(images.array.copy())
        return DeviceImages(images.to(self.place), mean, deviation), labels.to(self.place)

    def check_mapped(self) -> None:
        """As Mapped has it."""
        if hasattr(self.source, "check_mapped"):
            self.source.check_mapped()


def resident(source: Any, place: torch.device, memory: int, splits: tuple[str, ...]) -> Any:
    """`source` with its images on the device where they take at most a part of its `memory`;
    else `source` itself.
    """
    if not isinstance(source, Splits):
        return source
    needed = 0
    for split in splits:
        images = getattr(source, split)[0]
        if isinstance(images, MappedImages):
            needed += images.array.nbytes
        elif isinstance(images, Tensor):
            needed += images.element_size() * images.numel()
        else:  # in files
            return source
    return Resident(source, place) if needed * PART <= memory else source
