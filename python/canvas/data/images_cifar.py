"""CIFAR-10 and CIFAR-100 in their binary form: 60,000 photographs, 3 x 32 x 32.

A file is records without a header, 10,000 of them (50,000 in CIFAR-100's train.bin):

    | label, 1 byte (CIFAR-100: coarse, then fine) | red 32x32 | green 32x32 | blue 32x32 |

PATH is the archive as it was downloaded (cifar-10-binary.tar.gz, cifar-100-binary.tar.gz) or the
folder unpacked from it.  Validation is cut from the training images.  There is also a Python form,
of pickles: a pickle can run anything, so it is recognised and rejected.
"""

from __future__ import annotations

import os
import tarfile
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ..errors import CanvasError, one_line
from .dataset import Data, Split
from .images import CHUNK, Requested, check_memory, counted, finish, pick, quoted

SIDE = 32
PIXELS = 3 * SIDE * SIDE


@dataclass(frozen=True)
class Form:
    """How one of the two is laid out; `files`: how many records each file has."""

    title: str
    archive: str
    folder: str  # inside the archive
    classes: int
    label_bytes: int  # the last of them is the label
    train: Mapping[str, int]
    test: Mapping[str, int]
    pickles: frozenset[str]  # files by which the Python form is known

    @property
    def files(self) -> dict[str, int]:
        return {**self.train, **self.test}


CIFAR10 = Form(
    "CIFAR-10",
    "cifar-10-binary.tar.gz",
    "cifar-10-batches-bin",
    10,
    1,
    {f"data_batch_{i}.bin": 10_000 for i in range(1, 6)},
    {"test_batch.bin": 10_000},
    frozenset({"data_batch_1", "test_batch", "batches.meta"}),
)
CIFAR100 = Form(
    "CIFAR-100",
    "cifar-100-binary.tar.gz",
    "cifar-100-binary",
    100,
    2,
    {"train.bin": 50_000},
    {"test.bin": 10_000},
    frozenset({"train", "test", "meta"}),
)


def read_cifar10(name: str, path: str, requested: Requested) -> Data:
    """CIFAR-10's binary form at `path`."""
    return _read(CIFAR10, name, path, requested)


def read_cifar100(name: str, path: str, requested: Requested) -> Data:
    """CIFAR-100's binary form at `path`, with its 100 fine labels."""
    return _read(CIFAR100, name, path, requested)


def _read(form: Form, name: str, path: str, requested: Requested) -> Data:
    place = Path(os.path.expanduser(path))
    found = _from_folder(form, place) if place.is_dir() else _from_archive(form, place)
    sources: dict[str, Split] = {
        "train": _records(form, [found[file] for file in form.train]),
        "test": _records(form, [found[file] for file in form.test]),
    }
    names = [str(label) for label in range(form.classes)]
    splits = pick(sources, names, requested)
    side = requested.image_size or SIDE
    check_memory(sum(len(labels) for _, labels in splits), (3, side, side))
    splits = [(_resized(images, side), labels) for images, labels in splits]
    description = f"{form.title}: {counted(splits, form.classes, sources)}"
    return finish(name, description, splits, form.classes, requested, photographs=True)


def _from_folder(form: Form, place: Path) -> dict[str, bytes]:
    """The files of `form` in a folder, or in the archive's folder inside it."""
    folder = place / form.folder if (place / form.folder).is_dir() else place
    _check_names(form, place, {entry.name for entry in folder.iterdir()})
    for file in form.files:
        _check_size(form, file, (folder / file).stat().st_size, place)
    return {file: (folder / file).read_bytes() for file in form.files}


def _from_archive(form: Form, place: Path) -> dict[str, bytes]:
    """The files of `form` in an archive, wherever they lie in it; nothing is unpacked to disk."""
    if not place.is_file():
        raise CanvasError(f"there is neither a file nor a folder {quoted(place)}: {_wanted(form)}")
    found: dict[str, bytes] = {}
    there: set[str] = set()
    try:
        with tarfile.open(place) as archive:
            for member in archive:
                file = PurePosixPath(member.name).name
                there.add(file)
                content = archive.extractfile(member) if file in form.files else None
                if content is not None:
                    _check_size(form, file, member.size, place)
                    found[file] = content.read()
    except CanvasError:
        raise
    except Exception as error:  # a broken archive can raise anything
        raise CanvasError(
            f"{quoted(place)} is no whole archive ({one_line(error)}): {_wanted(form)}"
        ) from error
    _check_names(form, place, there)
    return found


def _wanted(form: Form) -> str:
    return f"{form.title} is read from {form.archive} or the folder unpacked from it"


def _check_names(form: Form, place: Path, there: Container[str]) -> None:
    missing = [file for file in form.files if file not in there]
    if missing and any(file in there for file in form.pickles):
        raise CanvasError(
            f"{quoted(place)} holds the Python form of {form.title}, pickles, which are never "
            f"loaded: get the binary form, {form.archive}"
        )
    if missing:
        raise CanvasError(f"{quoted(place)} has no file '{missing[0]}': {_wanted(form)}")


def _check_size(form: Form, file: str, size: int, place: Path) -> None:
    expected = form.files[file] * (form.label_bytes + PIXELS)
    if size != expected:
        raise CanvasError(
            f"file '{file}' in {quoted(place)} has {size} bytes instead of {expected}: it is no "
            f"whole file of {form.title}'s binary form"
        )


def _records(form: Form, contents: Sequence[bytes]) -> Split:
    """(uint8 [N, 3, 32, 32], labels [N])."""
    records: np.ndarray = np.concatenate(
        [np.frombuffer(content, np.uint8) for content in contents]
    )
    records = records.reshape(-1, form.label_bytes + PIXELS)
    labels: np.ndarray = records[:, form.label_bytes - 1].astype(np.int64)
    if labels.max() >= form.classes:
        raise CanvasError(
            f"{form.title} has labels up to {form.classes - 1}, this file one of {labels.max()}: "
            "it is broken or something else"
        )
    images = records[:, form.label_bytes :].reshape(-1, 3, SIDE, SIDE)
    return torch.from_numpy(images), torch.from_numpy(labels)


def _resized(images: Tensor, side: int) -> Tensor:
    if side == images.shape[-1]:
        return images
    return torch.cat(
        [
            F.interpolate(chunk, (side, side), mode="bilinear", antialias=True)
            for chunk in images.split(CHUNK)
        ]
    )
