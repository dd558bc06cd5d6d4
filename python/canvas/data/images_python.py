"""Images from Python: any torch Dataset or DataLoader, read once and kept.

An item is (image, label): a tensor [C, H, W], float or uint8 (which means 0..255), and a whole
number from 0.  All images have one size; a loader gives batches of such items.  What a dataset
does at random is done once, from one seed: leave flips and shifts to a training, which draws them
anew in every epoch.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from itertools import count, starmap
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset

from ..arguments import TEXT, WHOLE, checked
from ..errors import CanvasError, one_line
from .dataset import Data, Split
from .images import DATA_SEED, Requested, check_memory, counted, finish, pick

Source: TypeAlias = Any  # a torch Dataset or DataLoader


@checked(name=TEXT, classes=WHOLE)
def data_from(
    train: Source,
    validation: Source | None = None,
    test: Source | None = None,
    *,
    name: str = "own",
    classes: int | None = None,
    images: int | None = None,
    normalize: bool = False,
    flip: bool = False,
    crop: int = 0,
) -> Data:
    """The images of datasets or loaders as the Data of a search.

    Without `test` a fifth of `train` becomes that, without `validation` a tenth of what is left.
    `name` stands in the study and in tables.  `classes` is the number of classes (default: the
    largest label plus one); each must have a training image.  `images`, `normalize`, `flip` and
    `crop` are those of `load_data`, off by default.  Raises CanvasError with one message
    for what is no image, no label or no dataset.
    """
    requested = Requested(images=images, normalize=normalize, flip=flip, crop=crop)
    beside = {"validation": validation, "test": test}
    given = {part: source for part, source in beside.items() if source is not None}
    sources = {part: _read(part, source) for part, source in {"train": train, **given}.items()}
    _check_same(sources)
    number = _classes(sources, classes)
    splits = pick(sources, [str(label) for label in range(number)], requested)
    return finish(
        name, f"own images: {counted(splits, number, sources)}", splits, number, requested
    )


def _read(part: str, source: Source) -> Split:
    """(images [N, C, H, W] float32 or uint8, labels [N]) of a source, the same every time."""
    if not isinstance(source, (Dataset, DataLoader)):
        raise CanvasError(
            f"the {part} images are a {type(source).__name__}: give a torch Dataset or DataLoader"
        )
    images: list[Tensor] = []
    labels: list[int] = []
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(DATA_SEED)  # a loader may shuffle, a dataset may flip
        try:
            for image, label in starmap(_item, _items(source)):
                if images and image.shape != images[0].shape:
                    raise ValueError(f"it is {_shape(image)}, the first one {_shape(images[0])}")
                images.append(image)
                labels.append(label)
                check_memory(len(images), tuple(image.shape))
        except CanvasError:
            raise
        except Exception as error:  # the code of a dataset can raise anything
            raise CanvasError(
                f"{part} image {len(images)} cannot be used: {one_line(error)}"
            ) from error
    if not images:
        raise CanvasError(f"there is no {part} image")
    return torch.stack(images), torch.tensor(labels)


def _items(source: Source) -> Iterator[tuple[Any, Any]]:
    """(image, label) pairs; batches are taken apart."""
    by_index = not isinstance(source, (DataLoader, IterableDataset))
    for item in map(source.__getitem__, range(len(source))) if by_index else source:
        if not isinstance(item, (tuple, list)) or len(item) != 2:
            count = f" of {len(item)}" if isinstance(item, (tuple, list)) else ""
            raise TypeError(f"(image, label) is wanted, not {type(item).__name__}{count}")
        if isinstance(item[0], Tensor) and item[0].ndim == 4:
            yield from zip(*item, strict=True)
        else:
            yield item[0], item[1]


def _item(image: Any, label: Any) -> tuple[Tensor, int]:
    """The image as uint8 or float32 of its own memory, the label as a number."""
    if not isinstance(image, Tensor) or image.ndim != 3:
        what = f"[{_shape(image)}]" if isinstance(image, Tensor) else type(image).__name__
        raise TypeError(
            f"a tensor [C, H, W] is wanted, not {what}: add a transform to the dataset"
        )
    if image.dtype != torch.uint8 and not image.is_floating_point():
        raise TypeError(f"float or uint8 is wanted, not {image.dtype}")
    if image.is_floating_point() and not image.isfinite().all():
        raise ValueError("it has values that are no numbers")
    dtype = torch.uint8 if image.dtype == torch.uint8 else torch.float32
    return image.detach().to("cpu", dtype, copy=True), _number(label)


def _number(label: Any) -> int:
    try:
        number = operator.index(label)
    except TypeError:
        number = -1
    if number < 0:
        raise ValueError(f"its label is {str(label)[:40]}: labels are whole numbers from 0")
    return number


def _shape(image: Tensor) -> str:
    return "x".join(map(str, image.shape))


def _check_same(sources: dict[str, Split]) -> None:
    """All sources hold images of one shape and type."""
    first = sources["train"][0]
    for part, (images, _) in sources.items():
        if (images.shape[1:], images.dtype) != (first.shape[1:], first.dtype):
            raise CanvasError(
                f"{part} images are {_shape(images[0])} {images.dtype}, training images "
                f"{_shape(first[0])} {first.dtype}"
            )


def _classes(sources: dict[str, Split], wanted: int | None) -> int:
    """The number of classes, after a look whether each has a training image."""
    there = set(sources["train"][1].tolist())
    largest = max(int(labels.max()) for _, labels in sources.values())
    number = largest + 1 if wanted is None else wanted
    if largest >= number:
        raise CanvasError(
            f"a label is {largest}: with {number} classes {number - 1} is the largest"
        )
    missing = next(label for label in count() if label not in there)
    if missing < number:
        raise CanvasError(
            f"no training image has the label {missing}: each of {number} classes needs some"
        )
    if number < 2:
        raise CanvasError("all images have the same label: there must be two classes at least")
    return number
