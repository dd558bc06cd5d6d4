"""Batches of examples: what a training goes through, and what a score is taken on.

    Splits      images in memory or in mapped files, augmented batch by batch
    Streamed    batches that a loader of the user's makes, anew in every pass (streamed.py)

Both give the same things: how many steps an epoch has, the batches of an epoch, batches to
score, the first examples of a split, and a sample of it.  A batch is what a task takes: (inputs,
targets), or whatever the user's loader gives.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Protocol

import torch
from torch import Tensor

from ..errors import CanvasError
from ..inputs import Inputs
from .augment import Augmentation

SCORE_BATCH = 256
SCORE_BYTES = 64 << 20  # of the images of a batch
SAMPLE_SEED = 0
LEAST_WAIT = 0.1  # seconds of a pass; less is no bottleneck


class DataFailed(CanvasError):
    """Examples cannot be made, or are others than before: no fault of a network."""


class Pass(Protocol):
    """One epoch: iterating gives its batches; `plain(n)` has the first n of them, without
    augmentation where that is possible.
    """

    def __iter__(self) -> Iterator[Any]: ...

    def plain(self, count: int) -> Iterable[Any]: ...


class Source(Protocol):
    """Examples in three splits: train, validation and test."""

    def steps(self, size: int) -> int:
        """Batches of an epoch in batches of `size`, where the source makes them itself."""
        ...

    def epoch(self, size: int, order: torch.Generator, chance: torch.Generator) -> Pass:
        """The batches of an epoch, in the order that `order` draws."""
        ...

    def scoring(self, split: str) -> Iterable[Any]:
        """All batches of a split, the same every time."""
        ...

    def first(self, split: str, count: int) -> list[Any]:
        """The first batches of a split as they are, of together about `count` examples."""
        ...

    def sample(self, split: str, count: int, inputs_of: Callable[[Any], Inputs]) -> list[Inputs]:
        """The inputs of about `count` examples from all over a split in an order drawn by chance,
        the same every time: splits may be sorted by class.
        """
        ...

    def count(self, split: str) -> int:
        """Examples of a split."""
        ...


class NamedSource(Source, Protocol):
    """What a study can name: `checksum` is equal for equal examples."""

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def checksum(self) -> str: ...


class Splits:
    """What Data and Mapped have in common: splits of (images, labels) that can be indexed."""

    train: Any
    validation: Any
    test: Any
    augmentation: Augmentation

    def count(self, split: str) -> int:
        return len(getattr(self, split)[1])

    def steps(self, size: int) -> int:
        return len(batches_of(torch.arange(self.count("train")), size))

    def epoch(self, size: int, order: torch.Generator, chance: torch.Generator) -> Pass:
        return _Shuffled(self, size, order, chance)

    def scoring(self, split: str) -> Iterable[tuple[Tensor, Tensor]]:
        return _Batches(*getattr(self, split))

    def first(self, split: str, count: int) -> list[Any]:
        images, labels = getattr(self, split)
        return [(images[:count], labels[:count])]

    def sample(self, split: str, count: int, inputs_of: Callable[[Any], Inputs]) -> list[Inputs]:
        images, labels = getattr(self, split)
        at = drawn(len(labels), count)
        return [inputs_of((images[at], labels[at]))]


class LazySplits(Splits):
    """Splits that `_split` makes at their first use."""

    @cached_property
    def train(self) -> Any:
        return self._split("train")

    @cached_property
    def validation(self) -> Any:
        return self._split("validation")

    @cached_property
    def test(self) -> Any:
        return self._split("test")

    def _split(self, part: str) -> Any:
        """(images, labels) of a split."""
        raise NotImplementedError


class _Batches:
    """All images of a split in batches, as often as they are gone through."""

    def __init__(self, images: Any, labels: Tensor) -> None:
        self.images, self.labels = images, labels
        each = 4 * math.prod(images.shape[1:])
        self.size = max(1, min(SCORE_BATCH, SCORE_BYTES // max(each, 1)))

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        parts = self.images.split(self.size), self.labels.split(self.size)
        return zip(*parts, strict=True)

    def __len__(self) -> int:
        return -(-len(self.labels) // self.size)


class Watched:
    """Batches, and the `share` of the time of a pass that was spent waiting for them; 0 where that
    was less than LEAST_WAIT.
    """

    def __init__(self, batches: Iterable[Any]) -> None:
        self.batches = batches
        self.share = 0.0

    def __iter__(self) -> Iterator[Any]:
        waited, begun = 0.0, time.monotonic()
        batches = iter(self.batches)
        while True:
            since = time.monotonic()
            try:
                batch = next(batches)
            except StopIteration:
                break
            finally:
                waited += time.monotonic() - since
            yield batch
        if waited >= LEAST_WAIT:
            self.share = waited / (time.monotonic() - begun)


class _Shuffled:
    def __init__(
        self, data: Splits, size: int, order: torch.Generator, chance: torch.Generator
    ) -> None:
        self.data, self.size, self.chance = data, size, chance
        self.order = torch.randperm(data.count("train"), generator=order)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        images, labels = self.data.train
        order = batches_of(self.order, self.size)
        for at, batch in zip(order, _fetched(images, order), strict=True):
            yield self.data.augmentation.apply(batch, self.chance), labels[at]

    def plain(self, count: int) -> Iterator[tuple[Tensor, Tensor]]:
        images, labels = self.data.train
        order = self.order[: count * self.size].split(self.size)
        for at, batch in zip(order, _fetched(images, order), strict=True):
            yield batch, labels[at]


def _fetched(images: Any, order: Sequence[Tensor]) -> Iterable[Tensor]:
    """`images[at]` of each, ahead of time where they are in files."""
    ahead = getattr(images, "ahead", None)
    return ahead(order) if ahead else (images[at] for at in order)


def drawn(total: int, count: int) -> Tensor:
    """Positions of `count` of `total` examples in an order by chance, the same every time."""
    return torch.randperm(total, generator=torch.Generator().manual_seed(SAMPLE_SEED))[:count]


def batches_of(order: Tensor, size: int) -> list[Tensor]:
    """Batches of `size`; a last batch of one image joins its neighbour, for BatchNorm cannot
    take one.
    """
    batches = list(order.split(size))
    if len(batches) > 1 and len(batches[-1]) == 1:
        batches[-2:] = [torch.cat(batches[-2:])]
    return batches
