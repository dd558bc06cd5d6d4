"""Files and folders that are written at once or not at all.

    .NAME.new   is written, then renamed to   NAME

A fault on the way leaves what was there before.  Only kill -9 leaves a .NAME.new, which the next
attempt writes over.  And files of lines, to which whole lines are added.
"""

from __future__ import annotations

import errno
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


def add_lines(path: str | os.PathLike[str], lines: str) -> None:
    """Whole lines behind those of a file, in one write, so that those of two processes do not mix.

    A last line that was torn stays one of its own.  Raises OSError; where there was no room
    for all, none is there.
    """
    with open(path, "ab", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        data = (b"" if _ends_a_line(path, size) else b"\n") + lines.encode()
        try:
            if file.write(data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError:
            with suppress(OSError):
                file.truncate(size)
            raise


def _ends_a_line(path: str | os.PathLike[str], size: int) -> bool:
    with open(path, "rb") as file:
        file.seek(max(0, size - 1))
        return not size or file.read(1) == b"\n"
