"""Files and folders that are written at once or not at all, locks, and files of lines.

    .NAME.TOKEN.new   is written, synced to disk, then renamed to   NAME

A fault on the way leaves what was there before.  TOKEN is random, and nothing is written over or
removed that another program made: two writers never share a temporary file.  A writer holds a lock
on its own; what a killed writer has left is not locked, and the next writer of NAME removes it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO

NEW = ".new"
TOKEN = 16 + len(NEW)  # characters of a temporary name after the head
TEMPORARY = re.compile(r"\..*\.[0-9a-f]{16}\.new", re.DOTALL)
STEM = 200  # bytes of NAME that a temporary name holds: systems take names of 255
LINKS = 40  # that are followed: as many as Linux follows
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
QUIETLY = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC  # no link, no waiting
NO_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS)  # file systems that sync no folders

# ---- at once ------------------------------------------------------------------------------------


@contextmanager
def at_once(path: Path, through_link: bool = True) -> Iterator[BinaryIO]:
    """A new file that takes the place of `path` when the block is done.

    Raises OSError where it cannot be written, where `path` is something else than a file, and,
    without `through_link`, where its folder is a symbolic link.
    """
    _check_place(path)
    with _opened(path.parent, through_link) as folder:
        _remove_left(path.parent, folder, path.name)
        name, handle = _new(folder, path.name, _make_file)
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                os.fsync(handle)
                os.replace(path.parent / name, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(name, dir_fd=folder)
            raise
        _sync_folder(folder)


@contextmanager
def named_file(path: Path) -> Iterator[BinaryIO]:
    """The file that a user named, written at once.  A symbolic link stays: the file that it leads
    to is replaced.  A pipe or a device is written directly, and so is an open file of /proc.

    Raises OSError where it cannot be written.
    """
    end = _end_of_links(path)
    with open(path, "wb") if end is None else at_once(end) as file:
        yield file


@contextmanager
def folder_at_once(path: Path) -> Iterator[Path]:
    """A new folder that becomes `path` when the block is done; an empty one may be there.

    Raises OSError where it cannot be written.
    """
    with _opened(path.parent) as folder:
        _remove_left(path.parent, folder, path.name)
        name, handle = _new(folder, path.name, _make_folder)
        try:
            yield path.parent / name
            _sync_files(path.parent / name)
            os.replace(path.parent / name, path)
        except BaseException:
            shutil.rmtree(path.parent / name, ignore_errors=True)
            raise
        finally:
            os.close(handle)
        _sync_folder(folder)


def remove_files(folder: Path, names: Sequence[str]) -> None:
    """Remove the files of these names in `folder`, and what killed writers of them have left.
    Nothing where the folder is a symbolic link or is not there.
    """
    try:
        handle = os.open(folder, FOLDER | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        for name in names:
            with suppress(FileNotFoundError, IsADirectoryError):
                os.unlink(name, dir_fd=handle)
        _remove_left(folder, handle, *names)
    finally:
        os.close(handle)


def remove_left(folder: Path, names: Sequence[str]) -> None:
    """Remove what killed writers of `names` have left in `folder`."""
    with _opened(folder) as handle:
        _remove_left(folder, handle, *names)


def temporary_name(name: str) -> str:
    """What a file or folder is called while it is written; no two are called the same."""
    return f"{_head(name)}{os.urandom(8).hex()}{NEW}"


def _head(name: str) -> str:
    return f".{os.fsdecode(os.fsencode(name)[:STEM])}."


def _end_of_links(path: Path) -> Path | None:
    """The path at the end of the links that begin at `path`; None: it is no file to replace."""
    end, direct = path, False
    for _ in range(LINKS + 1):
        try:
            target = os.readlink(end)
        except OSError:  # no link, or not there
            break
        direct = direct or _is_of_process(end)
        end = end.parent / target
    else:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    with suppress(OSError):
        mode = os.stat(path).st_mode
        direct = direct or not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
    return None if direct else end


def _is_of_process(link: Path) -> bool:
    """The link is one of /proc: it stands for an open file, which may have no name."""
    with suppress(OSError):
        return os.lstat(link).st_dev == os.stat("/proc/self/").st_dev
    return False


def _check_place(path: Path) -> None:
    """Reject what must not be replaced: a folder, a device, a pipe."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is no regular file", str(path))


@contextmanager
def _opened(folder: Path, through_link: bool = True) -> Iterator[int]:
    try:
        handle = os.open(folder, FOLDER | (0 if through_link else os.O_NOFOLLOW))
    except OSError as error:
        if not through_link and folder.is_symlink():
            raise OSError(errno.ELOOP, f"'{folder}' is a symbolic link", str(folder)) from error
        raise
    try:
        yield handle
    finally:
        os.close(handle)


def _new(folder: int, name: str, make: Any) -> tuple[str, int]:
    """A temporary file or folder that is ours alone: its name, a handle that holds its lock."""
    while True:
        new = temporary_name(name)
        try:
            handle: int = make(folder, new)
        except FileExistsError:
            continue
        try:
            free = try_lock(handle)
        except OSError:
            free = True  # where nothing can be locked nobody removes what is left
        if free and _is_at(folder, new, handle):
            return new, handle
        os.close(handle)


def _make_file(folder: int, name: str) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | QUIETLY
    return os.open(name, flags, 0o666, dir_fd=folder)


def _make_folder(folder: int, name: str) -> int:
    os.mkdir(name, dir_fd=folder)
    try:
        return os.open(name, FOLDER | os.O_NOFOLLOW, dir_fd=folder)
    except FileNotFoundError as error:  # another writer removed it before its lock was taken
        raise FileExistsError from error


def _is_at(folder: int, name: str, handle: int) -> bool:
    """Whether `name` in `folder` is what `handle` has open."""
    try:
        return os.path.samestat(
            os.stat(name, dir_fd=folder, follow_symlinks=False), os.fstat(handle)
        )
    except OSError:
        return False


def _remove_left(parent: Path, folder: int, *names: str) -> None:
    """Remove what killed writers of `names` have left in `parent`, open as `folder`."""
    heads = {_head(name) for name in names}
    for entry in os.listdir(folder):
        if TEMPORARY.fullmatch(entry) and entry[:-TOKEN] in heads:
            with suppress(OSError):
                _remove_if_free(parent, folder, entry)


def _remove_if_free(parent: Path, folder: int, entry: str) -> None:
    status = os.stat(entry, dir_fd=folder, follow_symlinks=False)
    is_folder = stat.S_ISDIR(status.st_mode)
    if status.st_uid != os.geteuid() or not (is_folder or stat.S_ISREG(status.st_mode)):
        return
    flags = FOLDER if is_folder else os.O_RDWR
    handle = os.open(entry, flags | QUIETLY, dir_fd=folder)
    try:
        if not try_lock(handle) or not _is_at(folder, entry, handle):
            return
        if is_folder:
            shutil.rmtree(parent / entry, ignore_errors=True)
        else:
            os.unlink(entry, dir_fd=folder)
    finally:
        os.close(handle)


def _sync_folder(handle: int) -> None:
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in NO_SYNC:
            raise


def _sync_files(folder: Path) -> None:
    """Bring all that is in a folder to disk, and the folder itself."""
    for place, _, names in os.walk(folder):
        for name in names:
            with _handle(Path(place, name), os.O_RDONLY) as handle:
                os.fsync(handle)
        with _handle(Path(place), FOLDER) as handle:
            _sync_folder(handle)


@contextmanager
def _handle(path: Path, flags: int) -> Iterator[int]:
    handle = os.open(path, flags | QUIETLY)
    try:
        yield handle
    finally:
        os.close(handle)


# ---- locks and files from elsewhere -------------------------------------------------------------


def try_lock(file: Any) -> bool:
    """Take the lock of an open file, unless another holds it; it ends when the file is closed.

    Raises OSError for every other reason, as where the file system has no locks.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_locked(path: Path) -> bool:
    """Whether another process holds the lock of a file; False where that cannot be found out.  The
    lock is shared for a moment, so that one that is free does not stay taken.
    """
    try:
        handle = os.open(path, os.O_RDONLY | QUIETLY)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(handle)
    return False


def open_lock(path: Path, new: bool = True) -> IO[bytes]:
    """The file of a lock, made if it is missing and may be `new`; raises OSError, also where
    `path` is a link or no file.
    """
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT * new | QUIETLY, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, f"'{path.name}' is a symbolic link", str(path)) from error
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, f"'{path.name}' is no regular file", str(path))
    return os.fdopen(handle, "r+b", buffering=0)


def open_file(path: Path) -> BinaryIO:
    """A file to read; raises OSError, also for a pipe or a device, which could make us wait."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    return os.fdopen(handle, "rb")


# ---- files of lines -----------------------------------------------------------------------------


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
