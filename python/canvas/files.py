"""Files that are written at once or not at all.

    .NAME.new   is written, then renamed to   NAME

A fault on the way leaves what was there before.  Only kill -9 leaves a .NAME.new, which the next
attempt writes over.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


def temporary_name(name: str) -> str:
    """What a file is called while it is written."""
    return f".{name}.new"


@contextmanager
def at_once(path: Path) -> Iterator[BinaryIO]:
    """A new file that takes the place of `path` when the block is done.

    Raises OSError where it cannot be written.
    """
    temporary = path.with_name(temporary_name(path.name))
    try:
        with open(temporary, "wb") as file:
            yield file
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
