"""The files beside a study that its command writes: what may be removed, what is never touched.

No link is followed, and nothing is removed that a search or a fit does not write under that name.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import CanvasError
from ..files import at_once, remove_files, remove_left
from ..options import OPTIONS

FILE = "study.db"
KEPT = "rungs"  # the folder of trainings that were left off at their first rung
LAYER = "layer.safetensors"  # what a layer of the trained unchanged network sees and makes
SPLITS = ("train", "validation", "test")
IMAGES = "images"
IMAGE_FILES = (  # data/stored.py writes them
    *(
        f"{part}_{kind}.npy"
        for part in SPLITS
        for kind in ("images", "labels", "names", "ends", "states")
    ),
    "facts.json",
    "index.npz",
    "unreadable.jsonl",
)
LOOPS = "loops"  # a folder for each training by a loop of the user's
WEIGHTS = "weights"  # the folder of what a fit keeps, each file named by its sha256
TEACHER = "teacher.safetensors"  # the training of a fit's own teacher
REPORT = "report.html"  # the page of canvas report
LONG_OPTIONS = tuple(row.file for row in OPTIONS if row.file)
FIND_FILES = ("kernel.txt", "kernel.py", "pack.txt")
WEIGHTS_NAME = "weights.safetensors"
RESULT_FILES = ("pack.txt", "kernel.py", WEIGHTS_NAME)  # of a budget of a fit
FIND = re.compile("find-[0-9]+")
RESULT = re.compile("budget-[0-9]+")
WEIGHTS_FILE = re.compile(r"[0-9a-f]{64}\.safetensors")
LEFT = re.compile(r"\.(find-[0-9]+)\.[0-9a-f]{16}\.new")


def remove_outputs(folder: Path, finds: Sequence[str]) -> None:
    """Remove what a search of `finds` wrote, and nothing else that may be in the folder; the study
    last, so that a kill on the way leaves no find without its study.
    """
    for find in folder.glob("find-[0-9]*"):
        if FIND.fullmatch(find.name) and (find / "pack.txt").is_file():
            remove_files(find, FIND_FILES)
            _remove_empty(find)
    for result in folder.glob("budget-[0-9]*"):
        if RESULT.fullmatch(result.name) and not result.is_symlink():
            remove_files(result, RESULT_FILES)
            _remove_empty(result)
    names = [found[1] for path in folder.iterdir() if (found := LEFT.fullmatch(path.name))]
    remove_left(folder, names)
    remove_kept(folder, finds)
    remove_files(folder / IMAGES, IMAGE_FILES)
    remove_weights(folder)
    remove_loops(folder)
    remove_files(folder, (TEACHER, LAYER, *LONG_OPTIONS, "pareto.csv", REPORT))
    remove_files(folder, (FILE, f"{FILE}-wal", f"{FILE}-shm"))


def write_long_options(folder: Path, options: Mapping[str, Any]) -> None:
    """The texts of options, as files that a command can name; nothing reads them otherwise."""
    for row in OPTIONS:
        if row.file and (texts := options.get(row.name)):
            try:
                with at_once(folder / row.file) as file:
                    file.write("\n".join(texts).encode())
            except OSError as error:
                raise CanvasError(
                    f"'{folder / row.file}' cannot be written: {error.strerror or error}"
                ) from error


def weights_file(folder: Path, digest: str) -> Path:
    """Where a fit keeps the weights with this sha256."""
    return folder / WEIGHTS / f"{digest}.safetensors"


def remove_loops(folder: Path) -> None:
    """Remove the folders that loops of the user's had for checkpoints of this study."""
    place = folder / LOOPS
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place, ignore_errors=True)


def remove_weights(folder: Path) -> None:
    """Remove what fits have kept: it can be computed again."""
    place = folder / WEIGHTS
    if place.is_dir() and not place.is_symlink():
        names = [path.name for path in place.iterdir() if WEIGHTS_FILE.fullmatch(path.name)]
        remove_files(place, names)
        _remove_empty(place)


def kept_file(folder: Path, name: str) -> Path:
    """Where the training of find `name` is kept while it may go on."""
    return folder / KEPT / f"{name}.safetensors"


def layer_file(folder: Path) -> Path:
    """Where a layer of the trained unchanged network is recorded, to which kernels are fitted."""
    return folder / LAYER


def keeps(folder: Path) -> bool:
    """Whether trainings can be kept: makes their folder, and refuses a link in its place."""
    place = folder / KEPT
    with suppress(FileExistsError):
        place.mkdir()
    return place.is_dir() and not place.is_symlink()


def remove_kept(folder: Path, names: Sequence[str]) -> None:
    """Remove the trainings of finds `names` that were left off: they can be trained again."""
    forget_kept(folder, names)
    _remove_empty(folder / KEPT)


def forget_kept(folder: Path, names: Sequence[str]) -> None:
    """The same while others may still be kept."""
    remove_files(folder / KEPT, [kept_file(folder, name).name for name in names])


def _remove_empty(folder: Path) -> None:
    """Remove a folder unless it holds a file of the user's, is a link or is not there."""
    with suppress(OSError):
        folder.rmdir()
