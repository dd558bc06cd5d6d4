"""Files and folders that are written at once or not at all.

    .NAME.new   is written, then renamed to   NAME

A fault on the way leaves what was there before.  Only kill -9 leaves a .NAME.new, which the next
attempt writes over.
"""

from __future__ import annotations

import os
import shutil
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


@contextmanager
def folder_at_once(path: Path) -> Iterator[Path]:
    """A new folder that becomes `path` when the block is done; an empty one may be there.

    Raises OSError where it cannot be written.
    """
    new = path.with_name(temporary_name(path.name))
    try:
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir()
        yield new
        os.replace(new, path)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
