"""Image files in folders, one folder per class.

    PATH/train/CLASS/...   at any depth, .jpg .jpeg .png .bmp .gif .webp .tif .tiff .ppm .pgm
    PATH/val/CLASS/...     or valid/; with test/ beside it: for validation
    PATH/test/CLASS/...    kept for the very end; so is val/ where there is no test/

What is missing is cut from train: a tenth for validation, a fifth for test.  Classes are the names
of the folders of train, sorted.  Images that together are small are decoded once; others stay in
their files, from which each batch is decoded (file_images.py).  The size is that of the first
training image, but 64 at most, unless the user names one.

Links to folders are followed, each folder once for a class.  The description counts what is not
read: other files, hidden ones, broken links, links in a circle, folders that were read before.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from ..text import printable
from .batches import drawn
from .dataset import Data, Split
from .decode import Unreadable, opened
from .file_images import NOTES, FileImages, Notes, words
from .folder_scan import Scan, load_index, save_index, scan
from .images import (
    LIMITS,
    Requested,
    chunk_of,
    complete,
    counted,
    finish,
    machine_memory,
    moments,
    split,
    wants_normalized,
)

LARGEST = 64  # side of the images where the user names none
TRIED = 1000  # files, the first of which that can be read gives the side
IN_MEMORY = 1 << 30  # bytes of images that are decoded once, at most
SHARE = 4  # of the machine's memory they take one in so many, at most
SAMPLE = 2048  # images from which mean and deviation are taken where they stay in files


def read_folder(name: str, path: str, requested: Requested) -> Data:
    """The images under folder `path` as photographs, 3 x side x side."""
    root = os.path.expanduser(path)
    listed = load_index(root, requested.beside)
    if listed is None or not _stay(listed, requested):
        listed = scan(root)
    parts = split(
        {source: files.labels for source, files in listed.sources.items()},
        listed.classes,
        requested,
    )
    stay = _stay(listed, requested)
    side, notes = _side(listed, requested), Notes()
    splits: list[Split] = []
    for source, chosen in parts:
        files = listed.sources[source]
        names = [files.names[i] for i in chosen]
        images = FileImages.of(listed.root, names, files.states[chosen], side, notes)
        splits.append((images, torch.from_numpy(files.labels[chosen])))
    classes = len(listed.classes)
    description = f"{counted(splits, classes, listed.sources)}, from {printable(listed.root)}"
    description += listed.words()
    if stay:
        return _from_files(name, description, splits, requested, listed)
    decoded = [
        (torch.from_numpy(images.bytes_of(slice(None))), labels) for images, labels in splits
    ]
    if notes.found:
        description += f"; {words(notes.found)}"
    return finish(name, description, decoded, classes, requested, photographs=True)


def _side(listed: Scan, requested: Requested) -> int:
    if requested.image_size:
        return requested.image_size
    failed = None
    for name in listed.sources["train"].names[:TRIED]:
        try:
            with opened(os.path.join(listed.root, name)) as image:
                return max(LIMITS["image_size"][0], min(LARGEST, *image.size))
        except Unreadable as error:
            failed = failed or error
    assert failed is not None  # no class is empty
    raise failed


def _stay(listed: Scan, requested: Requested) -> bool:
    """Whether the images, as float32, are too many for memory."""
    sizes = {source: len(files.names) for source, files in listed.sources.items()}
    test = sizes.pop("test", 0)
    trained = sum(sizes.values())
    if requested.images is not None:
        trained = min(trained, requested.images)
    side = _side(listed, requested)
    needed = 4 * (trained + test) * math.prod((3, side, side))
    return needed > min(IN_MEMORY, machine_memory() // SHARE)


def _from_files(
    name: str, description: str, splits: Sequence[Split], requested: Requested, listed: Scan
) -> Data:
    mean: tuple[float, ...] = ()
    deviation: tuple[float, ...] = ()
    train = splits[0][0]
    if wants_normalized(requested, photographs=True):
        digest = hashlib.sha256()
        train.update(digest)
        key = digest.hexdigest()
        if key not in listed.moments:
            sample = drawn(len(train), SAMPLE).split(chunk_of(train))
            listed.moments = {key: moments(train.ahead(sample))}
        mean, deviation = (tuple(map(float, values)) for values in listed.moments[key])
        splits = [(images.normalized(mean, deviation), labels) for images, labels in splits]
    data = complete(
        name, f"{description}; decoded batch by batch", splits, len(listed.classes), requested,
        (mean, deviation), photographs=True,
    )  # fmt: skip
    return replace(data, listed=listed)


def keep_beside(data: Data, folder: Path) -> None:
    """Keep the index of the files, and notes of those that cannot be read, in `folder`; nothing
    for images in memory.  Raises OSError.
    """
    if data.listed is None:
        return
    folder.mkdir(exist_ok=True)
    save_index(data.listed, folder)
    data.train[0].notes.keep(folder / NOTES)  # one object for all splits


def unreadable(data: object) -> str:
    """A line about the files that no process could read until now; "" where there are none."""
    notes = getattr(getattr(data, "train", (None,))[0], "notes", None)
    return words(notes.read()) if isinstance(notes, Notes) else ""
