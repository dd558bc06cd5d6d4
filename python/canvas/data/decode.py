"""An image file as bytes [3, side, side], whatever kind of pixels it has.

Turned as the camera recorded, converted to RGB, the shorter side scaled to `side`, the middle cut
out.  Grey pixels are repeated, palettes looked up, CMYK converted and transparency left out, as
torchvision's loader has it; pixels of 16 bits are scaled to 8.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..errors import CanvasError, one_line
from .batches import DataFailed
from .images import quoted

DEEP = 257  # 65535 / 255


class Unreadable(CanvasError):
    """A file that is no image; `why` leaves its name out."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"image {quoted(path)} cannot be read: {why}")
        self.why = why


def decode(path: str, side: int) -> np.ndarray:
    """uint8 [3, side, side]; raises Unreadable."""
    from PIL import Image, ImageOps

    with opened(path) as image:
        if image.mode.startswith("F"):
            raise ValueError("its pixels are floating-point numbers: convert it first")
        if image.mode.startswith("I"):
            upright = ImageOps.exif_transpose(_eight_bits(image)).convert("RGB")
        else:
            image.draft("RGB", (side, side))  # a large JPEG is decoded at a fraction of its size
            upright = ImageOps.exif_transpose(image).convert("RGB")
        if upright.size != (side, side):
            upright = ImageOps.fit(upright, (side, side), Image.Resampling.BILINEAR)
        return np.asarray(upright).transpose(2, 0, 1)


def _eight_bits(image: Any) -> Any:
    """An image of 16 bits as one of 8; raises ValueError for more."""
    from PIL import Image

    values = np.asarray(image)
    if values.size and (values.min() < 0 or values.max() > 65535):
        raise ValueError("its pixels have more than 16 bits: convert it first")
    scaled = Image.fromarray((values / DEEP).round().astype(np.uint8))
    scaled.info.update(image.info)
    return scaled


def _mode_of(path: str) -> int:
    """0 where nothing is there.  Raises OSError."""
    try:
        return os.stat(path).st_mode
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return 0
        raise


@contextmanager
def opened(path: str) -> Iterator[Any]:
    """The Pillow image of a file; what is wrong with it is Unreadable, what the system cannot do
    is DataFailed.
    """
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        raise CanvasError(
            "data 'folder' needs Pillow, not installed here: pip install pillow"
        ) from error
    try:
        if not stat.S_ISREG(_mode_of(path)):
            raise ValueError("it is no file")
        with Image.open(path) as image:
            yield image
    except UnidentifiedImageError:
        raise Unreadable(path, "it is no image of a kind that is known") from None
    except MemoryError:
        raise
    except OSError as error:
        if error.errno is None:  # of a decoder
            raise Unreadable(path, one_line(error)) from error
        raise DataFailed(
            f"image {quoted(path)} cannot be read: {error.strerror}; where the system is at "
            "fault, the same command goes on"
        ) from error
    except Exception as error:  # decoders of broken files raise anything
        raise Unreadable(path, one_line(error)) from error
