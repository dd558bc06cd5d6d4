"""The images that a search trains on, by name.

Every reader gives a `Data` of three splits (dataset.py) and takes the same requested options
(images.py); nothing is ever downloaded.  To add one: a file images_NAME.py and its line in
READERS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..arguments import TEXT, checked
from ..errors import CanvasError
from .dataset import SPLITS, Data
from .images import Requested, quoted
from .images_cifar import read_cifar10, read_cifar100
from .images_digits import digits, digits_scattered
from .images_folder import read_folder
from .images_python import data_from
from .images_synthetic import read_synthetic

__all__ = ["DATA_HELP", "READERS", "SPLITS", "Data", "as_data", "data_from", "load_data"]


@dataclass(frozen=True)
class Reader:
    """One kind of data: `read(name, path, requested)` gives it, `path` "" where none is."""

    read: Callable[[str, str, Requested], Data]
    path: bool
    help: str


READERS = {
    "digits": Reader(digits, False, "scans of handwritten digits, 8x8"),
    "digits-scattered": Reader(digits_scattered, False, "the scans on a busy 16x16 field"),
    "synthetic": Reader(read_synthetic, False, "made-up stripes of ten directions, 16x16"),
    "cifar10": Reader(read_cifar10, True, "cifar-10-binary.tar.gz or its folder"),
    "cifar100": Reader(read_cifar100, True, "cifar-100-binary.tar.gz or its folder"),
    "folder": Reader(read_folder, True, "image files in train/CLASS and val/ or test/CLASS"),
}

NAMES = [kind + ":PATH" * reader.path for kind, reader in READERS.items()]

DATA_HELP = "".join(f"{name:<18} {reader.help}\n" for name, reader in zip(NAMES, READERS.values()))


@checked(name=TEXT)
def load_data(
    name: str,
    *,
    image_size: int | None = None,
    images: int | None = None,
    normalize: bool | None = None,
    flip: bool | None = None,
    crop: int | None = None,
) -> Data:
    """The data called `name`, a kind of READERS with its path (`folder:PATH`).

    None leaves it to the reader.  `image_size` is the side in pixels, `images` the largest number
    of training images (validation included; the same share of each class), `normalize` whether
    each channel gets mean 0 and deviation 1 over the training split; `flip` mirrors and `crop`
    shifts by up to so many pixels while training.  Raises CanvasError with one message for what
    cannot be found, read or done.
    """
    return named_data(name, Requested(image_size, images, normalize, flip, crop))


def named_data(name: str, requested: Requested) -> Data:
    """As `load_data`."""
    kind, _, path = name.partition(":")
    if kind not in READERS:
        raise CanvasError(f"no data is called {quoted(name)}: there are {', '.join(NAMES)}")
    reader = READERS[kind]
    if reader.path and not path:
        raise CanvasError(f"data '{kind}' needs a path: {kind}:PATH")
    if path and not reader.path:
        raise CanvasError(f"data '{kind}' takes no path, not {quoted(path)}")
    try:
        return reader.read(name, path, requested)
    except OSError as error:
        where = f": {quoted(error.filename)}" if error.filename else ""
        raise CanvasError(
            f"data {quoted(name)} cannot be read: {error.strerror}{where}"
        ) from error


def as_data(value: Any, beside: Path | None = None, **requested: Any) -> Data:
    """Whatever a user of Python may call data, as a Data; `beside`: the images of a study, which
    may have an index of them.

    A name (`load_data`, which takes `requested`), a Data as it is, a torch Dataset or DataLoader,
    a pair (train, test) or a triple (train, validation, test) of them (`data_from`, likewise).
    Raises CanvasError with one message for anything else.
    """
    if isinstance(value, str):
        return named_data(value, Requested(**requested, beside=beside))
    asked = {name: value for name, value in requested.items() if value is not None}
    if isinstance(value, Data):
        if asked:
            raise CanvasError(f"data {quoted(value.name)} is complete: leave {min(asked)} out")
        return value
    if "image_size" in asked:
        raise CanvasError("a torch Dataset gives its images in one size: leave image_size out")
    if not isinstance(value, (tuple, list)):
        return data_from(value, **asked)
    if len(value) == 2:
        return data_from(value[0], test=value[1], **asked)
    if len(value) == 3:
        return data_from(*value, **asked)
    raise CanvasError("several data sets are (train, test) or (train, validation, test)")


def load_images(options: Mapping[str, Any]) -> Data:
    """The images that the options name."""
    return load_data(options["data"], **image_options(options))


def image_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """What the options want of the images; None leaves it to the reader."""
    asked = {name: options[name] for name in ("image_size", "images", "crop")}
    for name in ("normalize", "flip"):
        asked[name] = None if options[name] is None else options[name] == "yes"
    return asked
