"""A folder for what children leave while they work: the files of compilers, torch.compile's cache.

    canvas-children-PLACE-DRIVER-xxxxxxxx          one for each pool, removed with it
    canvas-children-PLACE-DRIVER-xxxxxxxx/lock     locked while the pool is open

torch.compile writes its commands without quotes, so a blank in any path ends them.  Therefore the
folder's own path has none, and a folder with a blank that Python imports from stands behind a link
in here.

PLACE names host, boot and PID namespace (orphans.py).  When a pool of the same place opens, the
folder of a driver that was killed goes, and so does what its children left running: its lock is
free.  A folder without a lock, of another place or of another user is left alone.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from ..errors import CanvasError
from ..files import open_lock, try_lock
from .orphans import kill_children_of, marked_folders, place

PREFIX = "canvas-children"
LOCK = "lock"
NAME = re.compile(f"{PREFIX}-([0-9a-f]{{16}})-[0-9]+-[a-z0-9_]{{8}}")


class Scratch:
    """The folder of a pool, held by a lock until it is removed."""

    def __init__(self, path: Path, lock: IO[bytes]) -> None:
        self.path = path
        self.lock = lock
        self.children = 0

    def new_mark(self) -> str:
        """A mark for the next child."""
        self.children += 1
        return f"{self.path}:{self.children}"

    def remove(self) -> None:
        _remove(self.path)
        self.lock.close()


def new_scratch() -> Scratch:
    """A new folder, without a blank in its path wherever the system has such a place."""
    name = f"{PREFIX}-{place() or '0' * 16}-{os.getpid()}-"
    for parent in _places():
        try:
            folder = Path(tempfile.mkdtemp(prefix=name, dir=os.path.abspath(parent)))
        except OSError:
            continue
        try:
            return Scratch(folder, _locked(folder))
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)
    raise CanvasError(f"no temporary folder can be made in '{tempfile.gettempdir()}'")


def _locked(folder: Path) -> IO[bytes]:
    """The lock of a new folder; it has its name once it is held, so that no one finds it free."""
    new = folder / f".{LOCK}"
    lock = open_lock(new)
    try:
        try_lock(lock)
    except OSError:
        pass  # no locks here: then no one can find it free either
    try:
        os.rename(new, folder / LOCK)
    except OSError:
        lock.close()
        raise
    return lock


def clear_left() -> None:
    """Kill what children of killed drivers left running, and remove the folders of those."""
    here = place()
    found = (Path(parent).glob(f"{PREFIX}-*") for parent in dict.fromkeys(_places()))
    for folder in marked_folders().union(*found):
        known = NAME.fullmatch(folder.name)
        if known and known[1] == here:
            with _left(folder) as left:
                if left:
                    kill_children_of(folder)
                    _remove(folder)


@contextmanager
def _left(folder: Path) -> Iterator[bool]:
    """Whether the driver of a folder is gone: its lock is there and free, and held by us
    meanwhile.
    """
    lock = None
    try:
        status = os.lstat(folder)
        if stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid():
            lock = open_lock(folder / LOCK, new=False)
        left = lock is not None and try_lock(lock)
    except OSError:
        left = False
    try:
        yield left
    finally:
        if lock is not None:
            lock.close()


def _remove(folder: Path) -> None:
    """Remove a folder whose lock is ours; the lock last, so that what cannot be removed now can be
    found later.
    """
    try:
        for entry in os.scandir(folder):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            elif entry.name != LOCK:
                os.unlink(entry.path)
        if os.listdir(folder) == [LOCK]:
            shutil.rmtree(folder, ignore_errors=True)
    except OSError:
        pass


def environment_of(folder: Path) -> dict[str, str]:
    """What makes a child keep its files in `folder`; a cache that the user chose is kept.

    Raises:
        CanvasError: No files can be kept there.
    """
    cache = chosen_cache() or str(folder / "inductor")
    try:
        Path(cache).mkdir(parents=True, exist_ok=True)
        if not os.access(cache, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise CanvasError(
            f"no files can be kept in '{cache}', TORCHINDUCTOR_CACHE_DIR: {error.strerror}; name "
            "another folder for torch.compile's files, or none"
        ) from None
    return {"TMPDIR": str(folder), "TORCHINDUCTOR_CACHE_DIR": cache}


def chosen_cache() -> str:
    """The user's cache of torch.compile; "" where there is none.  Once torch has looked for it,
    its default stands in the environment, which all programs share: what one that was killed has
    left there fails in the next.
    """
    cache = os.environ.get("TORCHINDUCTOR_CACHE_DIR", "")
    usual = Path(tempfile.gettempdir())
    default = Path(cache).parent == usual and Path(cache).name.startswith("torchinductor_")
    return "" if default else cache


def import_without_blanks(path: list[str]) -> None:
    """Put a link in this process's temporary folder in place of every folder of `path` (which is
    sys.path) that has a blank in its name.
    """
    blank = [at for at, entry in enumerate(path) if has_blank(entry)]
    if not blank:
        return
    links = Path(tempfile.mkdtemp(prefix="path-"))
    for at in blank:
        link = links / str(at)
        link.symlink_to(os.path.abspath(path[at]))
        path[at] = str(link)


def has_blank(text: str) -> bool:
    return any(letter.isspace() for letter in text)


def _places() -> Iterator[str]:
    """Where the folder may stand, the best first."""
    usual = tempfile.gettempdir()
    places = [usual, "/tmp", "/var/tmp", "/dev/shm"]
    yield from (place for place in places if not has_blank(place) and os.access(place, os.W_OK))
    yield usual
