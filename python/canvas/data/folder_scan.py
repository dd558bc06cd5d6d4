"""Which image files a folder has, by class, and an index so that they are listed only once.

    scan(root)           lists PATH/train/CLASS/... and what is beside it
    load_index(place)    the same from the index, where no folder has changed since
    save_index(...)      beside the study: names, sizes and times of files, times of folders

A folder's time changes with each file that is added, renamed or removed in it; a file that was
written to is noticed by its own size and time when it is decoded (file_images.py).
"""

from __future__ import annotations

import errno
import json
import os
import stat
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import CanvasError
from ..files import at_once, open_file
from .images import quoted

ENDINGS = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
VALIDATION = ("val", "valid")  # one of them
INDEX = "index.npz"
RECENT = 2.0  # seconds: a folder that changed so shortly before it was listed may change unseen
NOT_THERE = (-1, -1)  # the state of a file that cannot be looked at

FOLDER = ("folder", "folders")  # it is read, what follows is not
OTHER = ("file that is no image", "files that are no images")
HIDDEN = ("hidden file or folder", "hidden files or folders")
BROKEN = ("broken link", "broken links")
AGAIN = ("folder that was read before", "folders that were read before")
LOOP = ("link that leads in a circle", "links that lead in a circle")
KINDS = {kind[0]: kind for kind in (OTHER, HIDDEN, BROKEN, AGAIN, LOOP)}

Left = Counter[tuple[str, str]]
State = tuple[int, int]  # bytes, second of the last change


@dataclass
class Files:
    """The files of a split: names from the root on, those of each class together and sorted."""

    names: list[str] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)  # of each class
    states: np.ndarray = field(default_factory=lambda: np.empty((0, 2), np.int64))  # [N, 2]

    @property
    def labels(self) -> np.ndarray:
        """int64 [N]."""
        return np.repeat(np.arange(len(self.counts)), self.counts)


@dataclass
class Scan:
    """What was found under `root`; `left` counts what is not read, `folders` has the time (ns) of
    each folder that was listed, `moments` what was computed of the images, by their checksum.
    """

    root: str
    classes: list[str] = field(default_factory=list)
    sources: dict[str, Files] = field(default_factory=dict)  # "train", "validation", "test"
    left: Left = field(default_factory=Left)
    folders: dict[str, int] = field(default_factory=dict)
    moments: dict[str, Any] = field(default_factory=dict)
    begun: float = field(default_factory=time.time)

    def words(self) -> str:
        """What is not read, for a description."""
        counts = [f"{self.left[kind]} {kind[self.left[kind] > 1]}" for kind in sorted(self.left)]
        return f" (not read: {', '.join(counts)})" if counts else ""


def scan(root: str) -> Scan:
    """The files of train and of what is there of validation and test; classes in sorted order.
    Raises CanvasError for what is no such folder.
    """
    top = Path(root)
    found = Scan(str(top))
    if not (top / "train").is_dir():
        there = "has no folder 'train'" if top.is_dir() else "is no folder"
        raise CanvasError(f"{quoted(root)} {there}: images are looked for as train/CLASS/FILE")
    _note(found, root)
    found.classes, found.sources["train"] = _classes(found, top / "train")
    names = found.classes
    if len(names) < 2:
        raise CanvasError(
            f"{quoted(top / 'train')} has {len(names) or 'no'} class folder"
            f"{' only' * len(names)}: there must be two classes at least"
        )
    beside = [folder for folder in ("test", *VALIDATION) if (top / folder).is_dir()]
    if set(VALIDATION) <= set(beside):
        raise CanvasError(
            f"{quoted(root)} has both 'val' and 'valid': leave one of them, it is for validation"
        )
    for source, folder in zip(("test", "validation"), beside):
        others, found.sources[source] = _classes(found, top / folder)
        _check_same(names, others, top / folder)
    return found


def _note(found: Scan, folder: str | Path) -> os.stat_result:
    facts = os.stat(folder)
    found.folders[os.fspath(folder)] = facts.st_mtime_ns
    return facts


def _check_same(names: Sequence[str], others: Sequence[str], folder: Path) -> None:
    """Reject a split whose classes are not those of train."""
    for name in sorted(set(names) ^ set(others)):
        where = f"is in 'train' but not in {quoted(folder)}"
        if name in others:
            where = f"is in {quoted(folder)} but not in 'train'"
        raise CanvasError(f"class {quoted(name)} {where}: all splits must have the same classes")


def _classes(found: Scan, folder: Path) -> tuple[list[str], Files]:
    """The image files of each class folder of `folder`; hidden files are none."""
    _note(found, folder)
    classes = []
    for entry in _entries(folder):
        kind = _kind_of(entry, folder)
        if kind is FOLDER:
            classes.append(entry.name)
        else:
            found.left[kind] += 1
    names: list[str] = []
    states: list[State] = []
    counts = []
    start = 0 if found.root == "." else len(os.path.join(found.root, ""))
    for name in classes:
        files = _images(found, folder / name)
        if not files:
            raise CanvasError(
                f"class folder {quoted(folder / name)} has no image: files ending in "
                f"{' '.join(ENDINGS)} are looked for"
            )
        counts.append(len(files))
        for path, state in files:
            names.append(path[start:])
            states.append(state)
    return classes, Files(names, counts, np.array(states, np.int64))


def _entries(folder: str | Path) -> list[os.DirEntry[str]]:
    """What is in a folder, sorted by name."""
    with os.scandir(folder) as entries:
        return sorted(entries, key=lambda entry: entry.name)


def _images(found: Scan, top: Path) -> list[tuple[str, State]]:
    """The image files in and below the class folder `top`, sorted.  Links are followed last, so
    that a folder is read under its own name.
    """
    files: list[tuple[str, State]] = []
    seen: set[tuple[int, int]] = set()
    links = [str(top)]
    while links:
        folders = [links.pop(0)]
        while folders:
            place = folders.pop()
            facts = _note(found, place)
            if (facts.st_dev, facts.st_ino) in seen:
                found.left[AGAIN] += 1
                continue
            seen.add((facts.st_dev, facts.st_ino))
            for entry in _entries(place):
                kind = _kind_of(entry, top)
                if kind is FOLDER:
                    (links if entry.is_symlink() else folders).append(entry.path)
                elif kind in (OTHER, BROKEN) and entry.name.lower().endswith(ENDINGS):
                    files.append((entry.path, _state_of(entry)))
                else:
                    found.left[kind] += 1
    return sorted(files)


def _state_of(entry: os.DirEntry[str]) -> State:
    try:
        return state_of(entry.stat())
    except OSError:
        return NOT_THERE  # decoding reports why it cannot be read


def state_of(facts: os.stat_result) -> State:
    return facts.st_size, int(facts.st_mtime)


def _kind_of(entry: os.DirEntry[str], top: Path) -> tuple[str, str]:
    """FOLDER, or how it is counted where it is not read.  LOOP: a link to a folder above the link
    or above `top`, through which other classes would be read.
    """
    if entry.name.startswith("."):
        return HIDDEN
    if not entry.is_symlink():
        return FOLDER if entry.is_dir() else OTHER
    try:
        folder = stat.S_ISDIR(os.stat(entry.path).st_mode)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            raise
        return LOOP if error.errno == errno.ELOOP else BROKEN
    target = os.path.realpath(entry.path)
    inside = [os.path.realpath(place) for place in (os.path.dirname(entry.path), top, top.parent)]
    loop = any(os.path.commonpath((target, place)) == target for place in inside)
    return (LOOP if loop else FOLDER) if folder else OTHER


# ---- the index ----------------------------------------------------------------------------------


def save_index(found: Scan, place: Path) -> None:
    """Keep `found` in the folder `place`, which is there.  Raises OSError."""
    facts = {
        "root": [found.root, os.path.abspath(found.root)],
        "classes": found.classes,
        "left": {kind[0]: count for kind, count in found.left.items()},
        "folders": found.folders,
        "moments": found.moments,
        "begun": found.begun,
        "sources": list(found.sources),
    }
    arrays: dict[str, np.ndarray] = {"facts": _bytes(json.dumps(facts).encode())}
    for source, files in found.sources.items():
        arrays[f"{source}_names"] = _bytes(packed(files.names))
        arrays[f"{source}_counts"] = np.array(files.counts, np.int64)
        arrays[f"{source}_states"] = files.states
    with at_once(place / INDEX, through_link=False) as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def load_index(root: str, place: Path | None) -> Scan | None:
    """The scan of `root` that is kept in the folder `place`; None where there is none, where it
    cannot be read, or where a folder has changed since.
    """
    if place is None or not (place / INDEX).is_file():
        return None
    try:
        with open_file(place / INDEX) as file, np.load(file, allow_pickle=False) as arrays:
            facts = json.loads(arrays["facts"].tobytes())
            if facts["root"] != [str(Path(root)), os.path.abspath(root)]:
                return None
            if not _unchanged(facts["folders"], float(facts["begun"])):
                return None
            sources = {name: _files(arrays, name) for name in facts["sources"]}
        if set(sources) - {"train", "validation", "test"} or "train" not in sources:
            return None
        if any(len(files.counts) != len(facts["classes"]) for files in sources.values()):
            return None
        left = Left({KINDS[kind]: int(count) for kind, count in facts["left"].items()})
        classes = [str(name) for name in facts["classes"]]
        folders, moments = dict(facts["folders"]), dict(facts["moments"])
        begun = float(facts["begun"])
        return Scan(str(Path(root)), classes, sources, left, folders, moments, begun)
    except Exception:  # damaged bytes can mean anything: the folder is listed anew
        return None


def _unchanged(folders: Mapping[str, int], begun: float) -> bool:
    for folder, changed in folders.items():
        if os.stat(folder).st_mtime_ns != changed or not changed / 1e9 <= begun - RECENT:
            return False
    return True


def _files(arrays: Mapping[str, np.ndarray], source: str) -> Files:
    names = unpacked(arrays[f"{source}_names"])
    counts = [int(count) for count in arrays[f"{source}_counts"]]
    states = np.asarray(arrays[f"{source}_states"], np.int64)
    if states.shape != (len(names), 2) or sum(counts) != len(names) or min(counts) < 1:
        raise ValueError("an index whose parts have other lengths")
    if any(name.startswith("/") for name in names):
        raise ValueError("an index of files elsewhere")
    return Files(names, counts, states)


def packed(names: Sequence[str]) -> bytes:
    """Names as the system has them, each ended by a zero byte, which no name holds."""
    return os.fsencode("\0".join([*names, ""]))


def unpacked(data: np.ndarray) -> list[str]:
    return os.fsdecode(data.tobytes()).split("\0")[:-1]


def _bytes(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint8)
