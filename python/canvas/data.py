"""The images that a search trains on, by name.

Every reader gives a `Data` of three splits (dataset.py) and takes the same wishes (images.py);
nothing is ever downloaded.  To add one: a file images_NAME.py and its line in READERS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .dataset import SPLITS, Data
from .errors import CanvasError
from .images import Wishes, quoted
from .images_digits import digits, digits_scattered
from .images_folder import read_folder

__all__ = ["DATA_HELP", "READERS", "SPLITS", "Data", "load_data"]


@dataclass(frozen=True)
class Reader:
    """One kind of data: `read(name, path, wishes)` gives it, `path` is "" where it takes none."""

    read: Callable[[str, str, Wishes], Data]
    path: bool
    help: str


READERS = {
    "digits": Reader(digits, False, "1797 scans of handwritten digits, 8x8"),
    "digits-scattered": Reader(digits_scattered, False, "the scans on a busy 16x16 field"),
    "folder": Reader(read_folder, True, "image files in train/CLASS and val/ or test/CLASS"),
}

NAMES = [kind + ":PATH" * reader.path for kind, reader in READERS.items()]

DATA_HELP = "".join(f"{name:<18} {reader.help}\n" for name, reader in zip(NAMES, READERS.values()))


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
    shifts by up to so many pixels while training.  Raises CanvasError with one sentence for what
    cannot be found, read or done.
    """
    wishes = Wishes(image_size, images, normalize, flip, crop)
    kind, _, path = name.partition(":")
    if kind not in READERS:
        raise CanvasError(f"no data is called {quoted(name)}: there are {', '.join(NAMES)}")
    reader = READERS[kind]
    if reader.path and not path:
        raise CanvasError(f"data '{kind}' needs a path: {kind}:PATH")
    if path and not reader.path:
        raise CanvasError(f"data '{kind}' takes no path, not {quoted(path)}")
    try:
        return reader.read(name, path, wishes)
    except OSError as error:
        where = f": {quoted(error.filename)}" if error.filename else ""
        raise CanvasError(
            f"data {quoted(name)} cannot be read: {error.strerror}{where}"
        ) from error
