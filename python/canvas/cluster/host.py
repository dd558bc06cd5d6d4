"""What runs on a node: one child that does jobs (workers/pool.py), and the files that it needs.

The driver calls one method at a time.  `work`, `go` and `more` return the messages of
the child since: each as text, with the files that came with it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import _core
from ..errors import CanvasError, one_line
from ..workers.begun import ENDS
from ..workers.pool import LOST_DATA, Pool
from ..workers.scratch import clear_left, new_scratch
from .job_files import WRITTEN, digest_of, paths_of, replaced

POLL = 10.0  # seconds after which a call returns without a message
PART = ".part"  # ends the name of a folder of images that is not complete
LEAST_MEMORY = 2 << 30  # bytes of data that a child may take, at least

Heard = list[tuple[str, dict[str, bytes]]]  # messages, each with files by the driver's paths


class Host:
    """A child of `program` on this node, one of `beside` that share its memory (0: no limit).

    `cache`: where images of a driver's are kept for all hosts of a node.
    """

    def __init__(self, program: Sequence[str], beside: int, cache: str = "") -> None:
        clear_left()
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        memory = max(LEAST_MEMORY, total * 4 // 5 // beside) if beside else 0
        self.pool = Pool(1, memory, program)
        self.scratch = new_scratch()
        self.cache = Path(cache or _cache_folder())
        self.images: dict[str, str] = {}  # words of the images that jobs read here
        self.shipped: dict[str, str] = {}  # digest of what a path of the driver's held
        self.words: dict[str, Any] = {}  # of the job under way, as the driver has them

    def hello(self) -> str:
        """What the driver compares: versions, processor, GPUs, as JSON."""
        from ..environment import machine, versions

        return json.dumps(
            {
                **{name: versions()[name] for name in ("canvas", "torch")},
                "sources": sources(),
                "processor": machine()["processor"],
                "name": socket.gethostname(),
                "gpus": os.environ.get("CUDA_VISIBLE_DEVICES", ""),
            }
        )

    # ---- images ---------------------------------------------------------------------------------

    def has_images(self, words: dict[str, str]) -> str:
        """Whether the images that the driver stored can be read here, by the same path or from the
        cache: "" if so, "lacks", or the reason that only its user can mend.
        """
        from ..data import stored

        own = self.cache / words["seal"]
        for folder in (Path(words["folder"]), own, self._incoming(words["seal"])):
            try:
                stored.check(folder, words["seal"])
            except CanvasError:
                continue
            if folder.suffix == PART:
                folder = _kept(folder, own)
            files = stored.describe(folder)["files"]
            if files and not os.path.isdir(files["root"]):
                return f"there is no folder '{files['root']}', where its images are files"
            self.images = {**words, "folder": str(folder)}
            return ""
        shutil.rmtree(own, ignore_errors=True)  # damaged
        for left in self.cache.glob(f"*-{socket.gethostname()}-*{PART}"):
            if not Path("/proc", left.stem.rpartition("-")[2]).exists():
                shutil.rmtree(left, ignore_errors=True)
        return "lacks"

    def _incoming(self, seal: str) -> Path:
        """Where images are written first: homes may be shared, and hosts of several nodes too."""
        return self.cache / f"{seal}-{socket.gethostname()}-{os.getpid()}{PART}"

    def take_images(self, seal: str, name: str, start: int, data: bytes) -> None:
        """A part of a file of the images, from byte `start`."""
        folder = self._incoming(seal)
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / os.path.basename(name), "r+b" if start else "wb") as file:
            file.seek(start)
            file.write(data)

    # ---- jobs -----------------------------------------------------------------------------------

    def take_file(self, path: str, digest: str, data: bytes) -> None:
        """What the driver's file at `path` holds."""
        if digest_of(data) != digest:
            raise OSError(f"a copy of '{path}' is damaged")
        place = self.scratch.path / f"file-{digest}"
        if not place.exists():
            whole = place.with_suffix(".part")
            whole.write_bytes(data)
            whole.replace(place)
        self.shipped[path] = digest

    def work(self, job: int, text: str, limit: float, known: dict[str, str]) -> Heard:
        """Begin a job; `known`: digest by path of the files that the driver has and this job may
        read, all of which were taken before.
        """
        self.words = json.loads(text)
        words = replaced(self.words, self._copies(known))
        if self.images and words.get("images"):
            words["images"] = self.images
        if "own" in words:  # a loop of the user's: its folder is on this node
            folder = self.scratch.path / "loops" / os.path.basename(words["own"]["folder"])
            words["own"] = {**words["own"], "folder": str(folder)}
        self.pool.start(job, words, limit)
        return self.more()

    def go(self, job: int, verdict: bool) -> Heard:
        """Tell a job that waits for a verdict whether to go on."""
        self.pool.answer(job, verdict)
        return self.more()

    def more(self) -> Heard:
        """The messages since; waits for one up to POLL."""
        until = time.monotonic() + POLL
        messages: list[dict[str, Any]] = []
        try:
            while not messages and time.monotonic() < until:
                messages = [message for _, message in self.pool.wait(until - time.monotonic())]
        except CanvasError as error:  # the images are not to be read any more
            messages = [
                {"event": "failed", "kind": LOST_DATA, "reason": one_line(error), "log": ""}
            ]
        return [
            (json.dumps(message), self._written() if message["event"] in ENDS else {})
            for message in messages
        ]

    def close(self) -> None:
        """End the child and remove what is here; a host that is killed leaves it to the next."""
        self.pool.close()
        self.scratch.remove()

    def _copies(self, known: dict[str, str]) -> dict[str, str]:
        """The path here for each path that the driver has in the words of a job."""
        copies = {path: str(self.scratch.path / f"file-{known[path]}") for path in known}
        for key in WRITTEN:
            if path := self.words.get(key):
                place = self._written_place(key)
                place.unlink(missing_ok=True)
                if path in known:
                    shutil.copyfile(copies[path], place)
                copies[path] = str(place)
        for path in map(str, paths_of(self.words)):
            copies.setdefault(path, str(self.scratch.path / "missing"))
        return copies

    def _written_place(self, key: str) -> Path:
        return self.scratch.path / f"job-{key}.safetensors"

    def _written(self) -> dict[str, bytes]:
        """What the job wrote, by the driver's path; it is as if that had been taken."""
        found = {}
        for key in WRITTEN:
            place, path = self._written_place(key), self.words.get(key)
            if path and place.exists():
                data = place.read_bytes()
                if self.shipped.get(path) != digest_of(data):
                    found[path] = data
                    self.take_file(path, digest_of(data), data)
        return found


def sources() -> str:
    """The sha256 of the package's Python files: what two machines must have in common."""
    root = Path(_core.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _kept(incoming: Path, place: Path) -> Path:
    """Where the images are that came: at their place, unless another host was faster."""
    try:
        incoming.rename(place)
        return place
    except OSError:
        return incoming


def _cache_folder() -> str:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(base, "canvas", "images")
