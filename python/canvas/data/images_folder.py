"""Image files in folders, one folder per class.

    PATH/train/CLASS/...   at any depth, .jpg .jpeg .png .bmp .gif .webp .tif .tiff .ppm .pgm
    PATH/val/CLASS/...     or valid/; with test/ beside it: for validation
    PATH/test/CLASS/...    kept for the very end; so is val/ where there is no test/

What is missing is cut from train: a tenth for validation, a fifth for test.  Classes are the names
of the folders of train, sorted.  Files are listed first and only those chosen are decoded: turned
as their camera recorded, converted to RGB, the shorter side scaled to the image size, the middle
cut out.  The size is that of the first training image, but 64 at most, unless the user names one.

Links to folders are followed, each folder once for a class.  The description counts what is not
read: other files, hidden ones, broken links, links in a circle, folders that were read before.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..errors import CanvasError, one_line
from ..text import printable
from .dataset import Data, Split
from .images import LIMITS, Requested, check_memory, counted, finish, quoted, split

ENDINGS = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
VALIDATION = ("val", "valid")  # one of them
LARGEST = 64  # side of the images where the user names none
BATCH = 64  # files that a thread reads at a time

Files = dict[str, list[str]]  # class -> its files, sorted

FOLDER = ("folder", "folders")  # it is read, what follows is not
OTHER = ("file that is no image", "files that are no images")
HIDDEN = ("hidden file or folder", "hidden files or folders")
BROKEN = ("broken link", "broken links")
AGAIN = ("folder that was read before", "folders that were read before")
LOOP = ("link that leads in a circle", "links that lead in a circle")

Left = Counter[tuple[str, str]]


def read_folder(name: str, path: str, requested: Requested) -> Data:
    """The images under folder `path` as photographs, 3 x side x side."""
    root, left = Path(os.path.expanduser(path)), Left()
    sources = _sources(root, left)
    names = list(sources["train"])
    labels: dict[str, np.ndarray] = {
        source: np.repeat(np.arange(len(names)), [len(files[name]) for name in names])
        for source, files in sources.items()
    }
    paths = {source: [p for of in files.values() for p in of] for source, files in sources.items()}
    parts = split(labels, names, requested)
    side = requested.image_size or _natural_side(paths["train"][0])
    check_memory(sum(len(chosen) for _, chosen in parts), (3, side, side))
    splits: list[Split] = [
        (
            _decode_all([paths[source][i] for i in chosen], side),
            torch.from_numpy(labels[source][chosen]),
        )
        for source, chosen in parts
    ]
    description = f"{counted(splits, len(names), sources)}, from {printable(str(root))}"
    description += _not_read(left)
    return finish(name, description, splits, len(names), requested, photographs=True)


def _not_read(left: Left) -> str:
    counts = [f"{left[kind]} {kind[left[kind] > 1]}" for kind in sorted(left)]
    return f" (not read: {', '.join(counts)})" if counts else ""


def _sources(root: Path, left: Left) -> dict[str, Files]:
    """The files of train and of what is there of validation and test; classes in sorted order.
    What is not read is counted in `left`.
    """
    if not (root / "train").is_dir():
        there = "has no folder 'train'" if root.is_dir() else "is no folder"
        raise CanvasError(f"{quoted(root)} {there}: images are looked for as train/CLASS/FILE")
    sources = {"train": _classes(root / "train", left)}
    names = list(sources["train"])
    if len(names) < 2:
        raise CanvasError(
            f"{quoted(root / 'train')} has {len(names) or 'no'} class folder"
            f"{' only' * len(names)}: there must be two classes at least"
        )
    beside = [folder for folder in ("test", *VALIDATION) if (root / folder).is_dir()]
    if set(VALIDATION) <= set(beside):
        raise CanvasError(
            f"{quoted(root)} has both 'val' and 'valid': leave one of them, it is for validation"
        )
    for source, folder in zip(("test", "validation"), beside):
        sources[source] = _classes(root / folder, left)
        _check_same(names, list(sources[source]), root / folder)
    return sources


def _check_same(names: Sequence[str], others: Sequence[str], folder: Path) -> None:
    """Reject a split whose classes are not those of train."""
    for name in sorted(set(names) ^ set(others)):
        where = f"is in 'train' but not in {quoted(folder)}"
        if name in others:
            where = f"is in {quoted(folder)} but not in 'train'"
        raise CanvasError(f"class {quoted(name)} {where}: all splits must have the same classes")


def _classes(folder: Path, left: Left) -> Files:
    """The image files of each class folder of `folder`; hidden files are none."""
    names = []
    for entry in _entries(folder):
        kind = _kind_of(entry, folder)
        if kind is FOLDER:
            names.append(entry.name)
        else:
            left[kind] += 1
    files = {name: _images(folder / name, left) for name in names}
    for name, found in files.items():
        if not found:
            raise CanvasError(
                f"class folder {quoted(folder / name)} has no image: files ending in "
                f"{' '.join(ENDINGS)} are looked for"
            )
    return files


def _entries(folder: str | Path) -> list[os.DirEntry[str]]:
    """What is in a folder, sorted by name."""
    with os.scandir(folder) as entries:
        return sorted(entries, key=lambda entry: entry.name)


def _images(top: Path, left: Left) -> list[str]:
    """The image files in and below the class folder `top`, sorted.  Links are followed last, so
    that a folder is read under its own name.
    """
    found: list[str] = []
    seen: set[tuple[int, int]] = set()
    links = [str(top)]
    while links:
        folders = [links.pop(0)]
        while folders:
            place = folders.pop()
            facts = os.stat(place)
            if (facts.st_dev, facts.st_ino) in seen:
                left[AGAIN] += 1
                continue
            seen.add((facts.st_dev, facts.st_ino))
            for entry in _entries(place):
                kind = _kind_of(entry, top)
                if kind is FOLDER:
                    (links if entry.is_symlink() else folders).append(entry.path)
                elif kind in (OTHER, BROKEN) and entry.name.lower().endswith(ENDINGS):
                    found.append(entry.path)  # decoding reports why one cannot be read
                else:
                    left[kind] += 1
    return sorted(found)


def _kind_of(entry: os.DirEntry[str], top: Path) -> tuple[str, str]:
    """FOLDER, or how it is counted where it is not read.  LOOP: a link to a folder above the link
    or above `top`, through which other classes would be read.
    """
    if entry.name.startswith("."):
        return HIDDEN
    if not entry.is_symlink():
        return FOLDER if entry.is_dir() else OTHER
    try:
        folder = stat.S_ISDIR(os.stat(entry.path).st_mode)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            raise
        return LOOP if error.errno == errno.ELOOP else BROKEN
    target = os.path.realpath(entry.path)
    inside = [os.path.realpath(place) for place in (os.path.dirname(entry.path), top, top.parent)]
    loop = any(os.path.commonpath((target, place)) == target for place in inside)
    return (LOOP if loop else FOLDER) if folder else OTHER


def _natural_side(path: str) -> int:
    """The side of the images where the user names none; `path` is the first of them."""
    with _opened(path) as image:
        return max(LIMITS["image_size"][0], min(LARGEST, *image.size))


def _decode_all(paths: Sequence[str], side: int) -> Tensor:
    """uint8 [N, 3, side, side]."""
    images: np.ndarray = np.empty((len(paths), 3, side, side), np.uint8)

    def fill(start: int) -> None:
        for i, path in enumerate(paths[start : start + BATCH], start):
            images[i] = _decode(path, side)

    threads = ThreadPoolExecutor(min(8, os.cpu_count() or 1))
    try:
        for _ in threads.map(fill, range(0, len(paths), BATCH)):
            pass
    finally:  # after an error or Ctrl-C no further batch is begun
        threads.shutdown(cancel_futures=True)
    return torch.from_numpy(images)


def _decode(path: str, side: int) -> np.ndarray:
    """uint8 [3, side, side]."""
    from PIL import Image, ImageOps

    with _opened(path) as image:
        if image.mode.startswith(("I", "F")):
            raise ValueError(f"it has {image.mode} pixels, more than 8 bits: convert it first")
        image.draft("RGB", (side, side))  # a large JPEG is decoded at a fraction of its size
        upright = ImageOps.exif_transpose(image).convert("RGB")
        if upright.size != (side, side):
            upright = ImageOps.fit(upright, (side, side), Image.Resampling.BILINEAR)
        return np.asarray(upright).transpose(2, 0, 1)


@contextmanager
def _opened(path: str) -> Iterator[Any]:
    """The Pillow image of a file; whatever goes wrong with it is one message that names it."""
    try:
        from PIL import Image
    except ImportError as error:
        raise CanvasError(
            "data 'folder' needs Pillow, not installed here: pip install pillow"
        ) from error
    try:
        if not os.path.isfile(path):
            raise ValueError("it is no file")
        with Image.open(path) as image:
            yield image
    except Exception as error:  # decoders of broken files raise anything
        raise CanvasError(f"image {quoted(path)} cannot be read: {one_line(error)}") from error
