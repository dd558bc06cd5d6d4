"""Images as a study keeps them: a folder of plain NumPy arrays that every training maps.

    images/train_images.npy     bytes where they give back every bit of the images, else float32
          /train_labels.npy     and so on for validation, and for test where it is used
          /facts.json           what the images are, sha256 of each array

Of images that stay in files, train_names.npy, train_ends.npy and train_states.npy say which.

Pages of a mapped file are shared by all processes that read them.  The facts are written last, and
their own sha256, the seal, is passed to a training: an array that is damaged, exchanged or only
half written does not fit it.  A process computes the sha256 of an array once, and again only after
its file has changed.  To read a mapped file that was cut off meanwhile ends a process by SIGBUS:
only trainings map files, and who runs them asks `check` what the reason was.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from torch import Tensor

from ..errors import CanvasError, one_line
from ..files import at_once, open_file
from .augment import Augmentation
from .batches import LazySplits
from .dataset import SPLITS, Data, Split
from .file_images import NOTES, FileImages, Notes
from .images import CHUNK, normalize, scale

FOLDER = "images"  # beside the study
FACTS = "facts.json"
FILE_ARRAYS = ("names", "ends", "states")  # of FileImages
DESCRIBED = (
    *("name", "classes", "description", "checksum", "mean", "deviation", "synthetic"),
    "test_groups",
)


class Exchanged(CanvasError):
    """The images are there, but others than those that were stored."""


# ---- writing ------------------------------------------------------------------------------------


def store(data: Data, folder: Path, splits: Sequence[str] = SPLITS) -> str:
    """Keep these splits of `data` in `folder`, and return their seal.

    What is there already, and is the same, is left alone.  Raises OSError where nothing can be
    written, as where other images stand behind a symbolic link.
    """
    arrays = {name: array for part in splits for name, array in _arrays(data, part)}
    facts = {name: getattr(data, name) for name in DESCRIBED}
    facts |= {"augmentation": asdict(data.augmentation), "shape": data.shape}
    if isinstance(data.train[0], FileImages):
        facts["files"] = {"root": os.path.abspath(data.train[0].root)}
    facts["sha256"] = {name: _sha256_array(array) for name, array in arrays.items()}
    text = json.dumps(facts, indent=1).encode()
    if not _is_kept(folder, text, facts["sha256"]):
        folder.mkdir(exist_ok=True)
        for name, array in arrays.items():
            with at_once(_place(folder, name), through_link=False) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)
        with at_once(folder / FACTS, through_link=False) as file:
            file.write(text)
    return hashlib.sha256(text).hexdigest()


def _arrays(data: Data, part: str) -> Iterator[tuple[str, np.ndarray]]:
    """What is kept of a split, by name."""
    images, labels = getattr(data, part)
    if isinstance(images, FileImages):
        for kind in FILE_ARRAYS:
            yield f"{part}_{kind}", getattr(images, kind)
    else:
        kept = _as_bytes(images, data)
        yield f"{part}_images", images.numpy() if kept is None else kept
    yield f"{part}_labels", labels.numpy()


def _as_bytes(images: Tensor, data: Data) -> np.ndarray | None:
    """The images as the bytes they were made of; None where some bit would be lost."""
    found: np.ndarray = np.empty(tuple(images.shape), np.uint8)
    mean, deviation = (
        torch.tensor(values)[:, None, None] if values else torch.tensor(default)
        for values, default in ((data.mean, 0.0), (data.deviation, 1.0))
    )
    for start in range(0, len(images), CHUNK):
        chunk = images[start : start + CHUNK]
        nearest = ((chunk * deviation + mean) * 255).round_().clamp_(0, 255).to(torch.uint8)
        if not torch.equal(_numbers(nearest, data.mean, data.deviation), chunk):
            return None
        found[start : start + CHUNK] = nearest.numpy()
    return found


def _is_kept(folder: Path, text: bytes, digests: Mapping[str, str]) -> bool:
    try:
        same = _text(folder) == text
        return same and all(_digest(_place(folder, name)) == of for name, of in digests.items())
    except Exception:  # damaged bytes can mean anything
        return False


# ---- reading ------------------------------------------------------------------------------------


def read(folder: Path) -> Data:
    """All three splits in memory; CanvasError where the folder holds something else."""
    with _readable(folder):
        facts = describe(folder)
        for name, digest in facts["sha256"].items():
            if _digest(_place(folder, name)) != digest:
                raise ValueError(f"the sha256 of {name}.npy is another")
        splits = {part: _split(folder, part, facts, _read_array) for part in SPLITS}
        whole: Any = {
            part: (images if isinstance(images, FileImages) else images[:], labels)
            for part, (images, labels) in splits.items()
        }
        known = {name: facts[name] for name in DESCRIBED if name != "checksum"}
        data = Data(**whole, **known, augmentation=facts["augmentation"])
        if data.checksum != facts["checksum"]:
            raise ValueError("their checksum is another")
    return data


def describe(folder: Path) -> dict[str, Any]:
    """The facts of the images in `folder`; CanvasError where they are none."""
    with _readable(folder):
        return _facts(_text(folder))


def has(folder: Path, splits: Sequence[str] = SPLITS) -> bool:
    """Whether these splits are kept in `folder`, in whatever state."""
    kinds = [("images",), FILE_ARRAYS]
    return (folder / FACTS).is_file() and all(
        _place(folder, f"{part}_labels").is_file()
        and any(all(_place(folder, f"{part}_{k}").is_file() for k in kind) for kind in kinds)
        for part in splits
    )


def seal_of(folder: Path) -> str:
    """What names the images in `folder` to a training."""
    with _readable(folder):
        return hashlib.sha256(_text(folder)).hexdigest()


def check(folder: Path, seal: str) -> None:
    """Raise CanvasError where the images in `folder` are not, or not wholly, those of `seal`."""
    with _readable(folder):
        for name, digest in _sealed(folder, seal)["sha256"].items():
            if _digest(_place(folder, name)) != digest:
                raise _exchanged(folder, f"{name}.npy")


class Mapped(LazySplits):
    """The images in `folder` with the seal `seal`, as a training takes them: `train`,
    `validation` and `test` are checked and mapped at their first use.

    Raises Exchanged where the seal is another, CanvasError where something cannot be read.
    """

    def __init__(self, folder: Path, seal: str) -> None:
        self.folder = folder
        self.mapped: dict[str, tuple[BinaryIO, tuple[int, int]]] = {}  # open, and as they were
        with _readable(folder):
            self.facts = _sealed(folder, seal)
        self.augmentation: Augmentation = self.facts["augmentation"]
        self.classes: int = self.facts["classes"]
        self.shape: tuple[int, int, int] = self.facts["shape"]

    def _split(self, part: str) -> Split:
        with _readable(self.folder):
            kinds = FILE_ARRAYS if self.facts["files"] else ("images",)
            for name in (*(f"{part}_{kind}" for kind in kinds), f"{part}_labels"):
                if _digest(_place(self.folder, name)) != self.facts["sha256"].get(name):
                    raise _exchanged(self.folder, f"{name}.npy")
            return _split(self.folder, part, self.facts, self._map)

    def _map(self, place: Path) -> np.ndarray:
        file = open_file(place)
        self.mapped[place.name] = (file, _extent(file))
        shape, dtype, _ = _header(file)
        return np.memmap(file, dtype, "r", file.tell(), shape)

    def check_mapped(self) -> None:
        """Raise Exchanged where a file that is mapped was written to or cut off meanwhile."""
        for name, (file, before) in self.mapped.items():
            if _extent(file) != before:
                raise _exchanged(self.folder, name)


@dataclass(frozen=True)
class MappedImages:
    """Images [N, C, H, W] that stay in their file: `images[index]` and the batches of
    `images.split(size)` are float32 tensors of their own.
    """

    array: np.ndarray
    mean: tuple[float, ...]
    deviation: tuple[float, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.array.shape)

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, index: Any) -> Tensor:
        chosen: np.ndarray = self.array[index.numpy() if torch.is_tensor(index) else index]
        own = torch.from_numpy(np.array(chosen))
        if own.dtype == torch.uint8:
            return _numbers(own, self.mean, self.deviation)
        return own

    def split(self, size: int) -> Iterator[Tensor]:
        return (self[start : start + size] for start in range(0, len(self), size))


def _numbers(images: Tensor, mean: Sequence[float], deviation: Sequence[float]) -> Tensor:
    """Bytes as a reader of images makes numbers of them."""
    numbers = scale(images)
    if mean:
        normalize(numbers, mean, deviation)
    return numbers


def _split(
    folder: Path, part: str, facts: Mapping[str, Any], array: Callable[[Path], np.ndarray]
) -> Split:
    """A split whose images are read by `array`."""
    labels = _read_array(_place(folder, f"{part}_labels"))
    if facts["files"]:
        names, ends, states = (array(_place(folder, f"{part}_{kind}")) for kind in FILE_ARRAYS)
        _check_files(names, ends, states, len(labels))
        files = FileImages(
            facts["files"]["root"], names, ends, states, facts["files"]["side"], facts["mean"],
            facts["deviation"], Notes(folder / NOTES),
        )  # fmt: skip
        return files, torch.from_numpy(labels)
    images = array(_place(folder, f"{part}_images"))
    if images.dtype not in (np.uint8, np.float32) or images.shape[1:] != facts["shape"]:
        raise ValueError(f"the {part} images are {images.dtype} {list(images.shape)}")
    return MappedImages(images, facts["mean"], facts["deviation"]), torch.from_numpy(labels)


def _check_files(names: np.ndarray, ends: np.ndarray, states: np.ndarray, count: int) -> None:
    """Raise ValueError for arrays that do not say which files `count` images are."""
    if names.dtype != np.uint8 or names.ndim != 1 or ends.dtype != np.int64:
        raise ValueError("the names of its files are damaged")
    if states.dtype != np.int64 or states.shape != (count, 2) or ends.shape != (count,):
        raise ValueError("the states of its files are damaged")
    if not (np.diff(ends, prepend=-1) > 0).all() or (names[ends] != 0).any():
        raise ValueError("the names of its files are damaged")


def _read_array(place: Path) -> np.ndarray:
    with open_file(place) as file:
        array: np.ndarray = np.load(file, allow_pickle=False)
    return array


def _text(folder: Path) -> bytes:
    with open_file(folder / FACTS) as file:
        return file.read()


def _sealed(folder: Path, seal: str) -> dict[str, Any]:
    """The facts of the images; raises Exchanged where they are others than those of `seal`."""
    text = _text(folder)
    if hashlib.sha256(text).hexdigest() != seal:
        raise _exchanged(folder, FACTS)
    return _facts(text)


def _facts(text: bytes) -> dict[str, Any]:
    """The facts with their types; raises whatever is wrong with them."""
    facts = json.loads(text)
    channels, height, width = facts["shape"]
    return {
        "name": str(facts["name"]),
        "classes": int(facts["classes"]),
        "description": str(facts["description"]),
        "checksum": str(facts["checksum"]),
        "mean": tuple(map(float, facts["mean"])),
        "deviation": tuple(map(float, facts["deviation"])),
        "synthetic": bool(facts["synthetic"]),
        "test_groups": tuple(map(int, facts.get("test_groups", ()))),
        "augmentation": Augmentation(**facts["augmentation"]),
        "shape": (int(channels), int(height), int(width)),
        "files": _read_files(facts.get("files"), int(height)),
        "sha256": dict(facts["sha256"]),
    }


def _read_files(facts: Mapping[str, Any] | None, side: int) -> dict[str, Any] | None:
    return None if facts is None else {"root": str(facts["root"]), "side": side}


@contextmanager
def _readable(folder: Path) -> Iterator[None]:
    """Around what reads: whatever is wrong with the folder is one message that names it."""
    try:
        yield
    except (CanvasError, MemoryError):
        raise
    except OSError as error:
        raise CanvasError(
            f"the images in '{folder}' cannot be read: {error.strerror or one_line(error)}"
        ) from error
    except Exception as error:  # damaged bytes can mean anything
        raise CanvasError(f"the images in '{folder}' are damaged: {one_line(error)}") from error


def _exchanged(folder: Path, name: str) -> Exchanged:
    return Exchanged(
        f"the images in '{folder}' are others than the search began with: '{name}' has changed"
    )


# ---- checksums ----------------------------------------------------------------------------------

_known: dict[Path, tuple[tuple[int, ...], str]] = {}  # file -> (its state, sha256 of its array)


def _digest(place: Path) -> str:
    """The sha256 of the array in a file, computed once for each state of the file."""
    status = place.stat()
    state = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    if place not in _known or _known[place][0] != state:
        with open_file(place) as file:
            _known[place] = (state, _sha256(file))
    return _known[place][1]


def _sha256(file: BinaryIO) -> str:
    """Of the array in a file, which is read and not mapped, for it may be cut off any time."""
    shape, dtype, left = _header(file)
    digest = hashlib.sha256(f"{dtype.str} {list(shape)}\n".encode())
    while left:
        part = file.read(min(left, 1 << 20))
        if not part:
            raise ValueError("an array ends early")
        digest.update(part)
        left -= len(part)
    return digest.hexdigest()


def _header(file: BinaryIO) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """Shape, dtype and bytes of the array in a file, read up to its first byte."""
    version = np.lib.format.read_magic(file)
    read_header = getattr(np.lib.format, f"read_array_header_{version[0]}_0", None)
    if read_header is None:
        raise ValueError(f"an array of the format {version}")
    shape, by_columns, dtype = read_header(file)
    if dtype.hasobject:
        raise ValueError("an array of Python objects, which are not loaded")
    if by_columns or any(size < 0 for size in shape):
        raise ValueError(f"an array of shape {list(shape)} that is stored by columns or too small")
    return shape, dtype, math.prod(shape) * dtype.itemsize


def _extent(file: BinaryIO) -> tuple[int, int]:
    status = os.fstat(file.fileno())
    return status.st_size, status.st_mtime_ns


def _sha256_array(array: np.ndarray) -> str:
    digest = hashlib.sha256(f"{array.dtype.str} {list(array.shape)}\n".encode())
    for start in range(0, len(array), CHUNK):
        digest.update(np.ascontiguousarray(array[start : start + CHUNK]))
    return digest.hexdigest()


def _place(folder: Path, name: str) -> Path:
    return folder / f"{name}.npy"
