"""A folder for what children leave while they work: the files of compilers, torch.compile's cache.

    canvas-children-DRIVER-SINCE-xxxxxxxx     one for each pool, removed with it

torch.compile writes its commands without quotes, so a blank in any path ends them.  Therefore the
folder's own path has none, and a folder with a blank that Python imports from stands behind a link
in here.  The folder of a driver that was killed goes when the next one starts.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ..errors import CanvasError
from .orphans import born

PREFIX = "canvas-children"


def new_scratch() -> Path:
    """A new folder, without a blank in its path wherever the system has such a place."""
    remove_old()
    name = f"{PREFIX}-{os.getpid()}-{born(os.getpid())}-"
    for place in _places():
        try:
            return Path(tempfile.mkdtemp(prefix=name, dir=place))
        except OSError:
            continue
    raise CanvasError(f"no temporary folder can be made in '{tempfile.gettempdir()}'")


def remove_scratch(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


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
    blank = [place for place, entry in enumerate(path) if has_blank(entry)]
    if not blank:
        return
    links = Path(tempfile.mkdtemp(prefix="path-"))
    for place in blank:
        link = links / str(place)
        link.symlink_to(os.path.abspath(path[place]))
        path[place] = str(link)


def has_blank(text: str) -> bool:
    return any(letter.isspace() for letter in text)


def _places() -> Iterator[str]:
    """Where the folder may stand, the best first."""
    usual = tempfile.gettempdir()
    places = [usual, "/tmp", "/var/tmp", "/dev/shm"]
    yield from (place for place in places if not has_blank(place) and os.access(place, os.W_OK))
    yield usual


def remove_old() -> None:
    """Remove the folders of drivers that are gone."""
    for place in dict.fromkeys(_places()):
        for folder in Path(place).glob(f"{PREFIX}-*-*-*"):
            driver, since = folder.name.removeprefix(f"{PREFIX}-").split("-")[:2]
            if driver.isdigit() and since and born(int(driver)) != since:
                remove_scratch(folder)
