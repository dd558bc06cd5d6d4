"""Batches from the user's own loaders: nothing is kept in memory but what a pass needs.

A split is a torch Dataset, a DataLoader, or any iterable that gives its batches anew in every pass
(a list of batches, an object with __iter__).  What it does at random is drawn from seeds: the
training split anew in each epoch, the other splits the same every time.  Chance of torch, numpy
and Python's random counts; a generator of the loader's own is left alone.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset

from ..arguments import TEXT, checked, shown
from ..errors import CanvasError, one_line
from ..imports import find_by_name
from ..inputs import Inputs, join, tensors_of
from .batches import DataFailed, Pass, drawn
from .dataset import SPLITS
from .images import DATA_SEED

BATCH = 64  # of a Dataset, which makes none itself
VALIDATION_SHARE = 10  # one example in so many of a Dataset, where no validation split is given
TEST_SHARE = 5


class Scoring:
    """The batches of a split, the same in every pass; what else a loader has, such as `dataset`,
    is there, too.
    """

    def __init__(self, source: Streamed, split: str) -> None:
        self._source, self._split = source, split

    def __iter__(self) -> Iterator[Any]:
        return self._source.counted(self._split)

    def __len__(self) -> int:
        return self._source.batches[self._split]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source.loaders[self._split], name)


class Streamed:
    """Examples in three splits of batches.

    `train` is iterated once for each epoch.  Raises CanvasError with one message for what is no
    loader, and where a loader fails, is empty or ends early.
    """

    def __init__(self, train: Any, validation: Any, test: Any, name: str = "own") -> None:
        self.name = name
        self.loaders = {
            split: _loader(split, given)
            for split, given in zip(SPLITS, (train, validation, test), strict=True)
        }
        self.counts: dict[str, int] = {}
        self.batches: dict[str, int] = {}
        digest = hashlib.sha256()
        for split in ("validation", "test"):
            self._count(split, digest)
        length = _length(self.loaders["train"])
        if length is None:
            self._count("train", hashlib.sha256())
        else:
            self.batches["train"] = length
        digest.update(f"{self.batches['train']} training batches\n".encode())
        self.checksum = digest.hexdigest()
        self.description = (
            f"own loaders: {self.batches['train']} training batches, {self.counts['validation']} "
            f"validation and {self.counts['test']} test examples"
        )

    def _count(self, split: str, digest: Any) -> None:
        """Go through a split once: how much there is, and what its first batches hold."""
        examples = batches = 0
        for batch in self.iterate(split, DATA_SEED):
            tensors = tensors_of(batch)
            examples += _examples(batch)
            if not batches:
                for tensor in tensors:
                    digest.update(f"{split} {tensor.dtype} {list(tensor.shape)}\n".encode())
                    digest.update(np.ascontiguousarray(_numbers(tensor)))
            batches += 1
        digest.update(f"{examples}\n".encode())
        self.counts[split], self.batches[split] = examples, batches

    def classes(self) -> int:
        """One more than the largest class number in the validation split; raises CanvasError where
        the batches are not (inputs, class numbers).
        """
        most = -1
        for batch in self.scoring("validation"):
            labels = batch[1] if isinstance(batch, (tuple, list)) and len(batch) == 2 else None
            if not isinstance(labels, Tensor) or labels.is_floating_point() or labels.ndim != 1:
                raise CanvasError(
                    "a batch of a classification is (inputs, class numbers [N]): give a "
                    "canvas.Task for other batches"
                )
            if int(labels.min()) < 0:
                raise CanvasError(f"a label is {int(labels.min())}: class numbers begin with 0")
            most = max(most, int(labels.max()))
        return most + 1

    # ---- as a source of batches -----------------------------------------------------------------

    def count(self, split: str) -> int:
        return self.counts[split]

    def steps(self, size: int) -> int:
        """The loader's own batches, whatever `size` is."""
        return self.batches["train"]

    def epoch(self, size: int, order: torch.Generator, chance: torch.Generator) -> Pass:
        return _Epoch(self, int(torch.randint(2**62, (1,), generator=order)))

    def scoring(self, split: str) -> Scoring:
        return Scoring(self, split)

    def counted(self, split: str) -> Iterator[Any]:
        """One pass; raises DataFailed where it has another number of examples than the first."""
        examples = 0
        for batch in self.iterate(split, DATA_SEED):
            examples += _examples(batch)
            yield batch
        if split in self.counts and examples != self.counts[split]:
            raise DataFailed(
                f"the {split} loader gave {examples} examples, {self.counts[split]} in its first "
                "pass: it must give the same in every pass"
            )

    def first(self, split: str, count: int) -> list[Any]:
        found: list[Any] = []
        examples = 0
        for batch in self.iterate(split, DATA_SEED):
            found.append(batch)
            examples += _examples(batch)
            if examples >= count:
                break
        return found

    def sample(self, split: str, count: int, inputs_of: Callable[[Any], Inputs]) -> list[Inputs]:
        """From one pass over the split; the first batches of the training split, which is long and
        which a loader shuffles.
        """
        if split == "train":
            return [inputs_of(batch) for batch in self.first(split, count)]
        total = self.counts[split]
        order = drawn(total, count)
        place = torch.full((total,), -1)
        place[order] = torch.arange(len(order))
        found: list[Inputs] = []
        places: list[Tensor] = []
        begin = 0
        for batch in self.counted(split):
            at = place[begin : begin + _examples(batch)]
            begin += len(at)
            if (at >= 0).any():
                found.append(inputs_of(batch)[torch.nonzero(at >= 0)[:, 0]])
                places.append(at[at >= 0])
        return [join(found)[torch.argsort(torch.cat(places))]]

    def iterate(self, split: str, seed: int) -> Iterator[Any]:
        """The batches of one pass; raises CanvasError where it fails or gives none."""
        number = 0
        with seeded(seed):
            try:
                for batch in self.loaders[split]:
                    yield batch
                    number += 1
            except DataFailed:
                raise
            except (Exception, SystemExit) as error:  # the code of a loader can raise anything
                why = one_line(error)
                if isinstance(error, (ConnectionError, EOFError)) and _has_workers(self, split):
                    why = f"a worker process of the loader has died ({why})"
                raise DataFailed(
                    f"batch {number} of the {split} loader cannot be made: {why}"
                ) from error
        if not number:
            raise DataFailed(f"the {split} loader gives no batch")


def _has_workers(source: Streamed, split: str) -> bool:
    return bool(getattr(source.loaders[split], "num_workers", 0))


class _Epoch:
    def __init__(self, source: Streamed, seed: int) -> None:
        self.source, self.seed = source, seed
        self.seen: list[Any] = []

    def __iter__(self) -> Iterator[Any]:
        wanted = self.source.batches["train"]
        number = 0
        for batch in self.source.iterate("train", self.seed):
            if number == wanted:
                break
            if len(self.seen) < KEPT:
                self.seen.append(batch)
            yield batch
            number += 1
        if number < wanted:
            raise DataFailed(
                f"the train loader ended after {number} of {wanted} batches: every epoch needs "
                "as many"
            )

    def plain(self, count: int) -> Iterator[Any]:
        return iter(self.seen[:count]) if self.seen else islice(iter(self), count)


KEPT = 8  # batches of an epoch that statistics may be taken from


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """The chance of torch, numpy and random from `seed`, and afterwards as it was."""
    torch_state, numpy_state, state = (
        torch.get_rng_state(),
        np.random.get_state(),
        random.getstate(),
    )
    torch.manual_seed(seed)
    np.random.seed(seed % 2**32)
    random.seed(seed)
    try:
        yield
    finally:
        torch.set_rng_state(torch_state)
        np.random.set_state(numpy_state)
        random.setstate(state)


# ---- reading what the user gives ----------------------------------------------------------------


def streamed(value: Any, name: str = "own", tested: bool = True) -> Streamed:
    """(train, validation, test), or (train, test) or train alone where train is a Dataset with a
    length, from which the others are cut; (train, validation) where nothing is `tested`.  Raises
    CanvasError with one message.
    """
    parts = list(value) if isinstance(value, (tuple, list)) and 1 <= len(value) <= 3 else [value]
    if len(parts) == 2 and not tested:
        parts.append(parts[1])
    train, validation, test = parts if len(parts) == 3 else _cut(parts)
    return Streamed(train, validation, test, name)


@checked(name=TEXT)
def stream(train: Any, validation: Any = None, test: Any = None, *, name: str = "own") -> Streamed:
    """Examples that stay where your loaders have them: each is iterated anew in every pass.

    Each split is a torch Dataset, a DataLoader, or an iterable of batches that begins anew; a
    Dataset alone is cut.  For tasks other than classification data are always taken like this;
    `stream` is for classifications whose images do not fit into memory, or whose loader augments
    them.  Raises CanvasError with one message for what is no loader.
    """
    if (validation is None) != (test is None):
        missing = "validation" if validation is None else "test"
        raise CanvasError(f"give {missing}, too, or a Dataset alone, from which both are cut")
    return streamed((train,) if validation is None else (train, validation, test), name)


def streamed_by_name(name: str, tested: bool = True) -> Streamed:
    """The loaders that `package.module:callable` returns, or that it is."""
    found = made_by_name(name)
    return found if isinstance(found, Streamed) else streamed(found, name, tested)


def made_by_name(name: str) -> Any:
    """What `package.module:callable` returns, or the object of that name."""
    found = find_by_name(name, "data")
    if not callable(found):
        return found
    try:
        return found()
    except CanvasError:
        raise
    except Exception as error:
        raise CanvasError(f"data '{name}' cannot be made: {one_line(error)}") from error


def _cut(parts: list[Any]) -> list[Any]:
    """Three splits from a Dataset with a length, and perhaps a test split."""
    train, *rest = parts
    if isinstance(train, IterableDataset) or not (
        isinstance(train, Dataset) and isinstance(train, Sized)
    ):
        raise CanvasError(
            "the data of this task are (train, validation, test): only a Dataset with a length is "
            f"cut into splits, not {shown(train)}"
        )
    order = torch.randperm(len(train), generator=torch.Generator().manual_seed(DATA_SEED)).tolist()
    if not rest:
        cut = max(1, len(order) // TEST_SHARE)
        rest, order = [Subset(train, order[:cut])], order[cut:]
    cut = max(1, len(order) // VALIDATION_SHARE)
    if len(order) <= cut:
        raise CanvasError(f"{len(train)} training examples are too few to be cut into splits")
    return [Subset(train, order[cut:]), Subset(train, order[:cut]), *rest]


def _loader(split: str, given: Any) -> Iterable[Any]:
    if isinstance(given, Dataset):
        shuffle = split == "train" and not isinstance(given, IterableDataset)
        try:
            return DataLoader(given, batch_size=BATCH, shuffle=shuffle)
        except (TypeError, ValueError) as error:
            raise CanvasError(f"the {split} data cannot be used: {one_line(error)}") from error
    if not isinstance(given, Iterable) or isinstance(given, (str, bytes, Tensor)):
        raise CanvasError(
            f"the {split} data are {shown(given)}: give a torch Dataset, a DataLoader, or an "
            "iterable of batches"
        )
    if isinstance(given, Iterator):
        raise CanvasError(
            f"the {split} data can be gone through only once: give an object whose __iter__ "
            "begins anew, such as a list or a DataLoader"
        )
    return given


def _length(loader: Iterable[Any]) -> int | None:
    try:
        return len(loader) if isinstance(loader, Sized) else None
    except (TypeError, NotImplementedError):  # a DataLoader of an iterable without length
        return None


def _examples(batch: Any) -> int:
    """How many examples a batch has: the length of its first tensor; 1 for what has none."""
    tensors = tensors_of(batch)
    return len(tensors[0]) if tensors and tensors[0].ndim else 1


def _numbers(tensor: Tensor) -> Any:
    plain = tensor.detach().cpu()
    return plain.float().numpy() if plain.dtype == torch.bfloat16 else plain.numpy()
