"""Images that stay in their files: decoded batch by batch, the next batch while one is used.

A file that was written to since the folder was listed ends the run.  One that cannot be decoded is
grey in every pass, and is noted; where that are more than one in MANY, the run ends, too.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..text import printable
from .batches import DataFailed
from .decode import Unreadable, decode
from .folder_scan import NOT_THERE, packed, state_of
from .images import normalize, quoted, scale

NOTES = "unreadable.jsonl"
GREY = 128
SEEN, BAD = 1, 2  # what is known of a file: it was decoded, it could not be
MANY = 20  # at most one file in so many may be unreadable
ENOUGH = 1000  # files, of which that share is judged
PART = 8  # files that a thread decodes at a time
THREADS = 8  # at most
AHEAD = 1  # batches that are decoded while another is used


@dataclass
class Notes:
    """The files that could not be read, by name; with `place`, kept there as lines of JSON by
    every process.
    """

    place: Path | None = None
    found: dict[str, str] = field(default_factory=dict)  # name -> why
    written: set[str] | None = field(default=None, repr=False)  # what is in the file, once read

    def add(self, name: str, why: str) -> None:
        if name not in self.found:
            self.found[name] = why
            self._write(name)

    def keep(self, place: Path) -> None:
        """Write them to `place` from now on, and those that are not there yet."""
        self.place, self.written = place, None
        for name in list(self.found):
            self._write(name)

    def _write(self, name: str) -> None:
        if self.place is None:
            return
        if self.written is None:
            self.written = set(Notes(self.place).read())
        if name not in self.written:
            self.written.add(name)
            line = json.dumps({"file": name, "why": self.found[name]}) + "\n"
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
            try:
                file = os.open(self.place, flags, 0o666)
                try:
                    os.write(file, line.encode())
                finally:
                    os.close(file)
            except OSError:  # a note that is lost changes no result
                pass

    def read(self) -> dict[str, str]:
        """All that any process noted; damaged lines are none."""
        found = dict(self.found)
        if self.place is not None and self.place.is_file():
            for line in self.place.read_text(errors="replace").splitlines():
                try:
                    note = json.loads(line)
                    found.setdefault(str(note["file"]), str(note["why"]))
                except (ValueError, KeyError, TypeError):
                    continue
        return found


@dataclass(frozen=True)
class FileImages:
    """Images [N, 3, side, side] of files: `images[index]` and the batches of `images.split(size)`
    are float32 tensors, normalised where `mean` is given.

    `names`: from `root` on, bytes, each ended by a zero; `ends`: int64 [N], where each ends;
    `states`: int64 [N, 2], bytes and second of the last change.
    """

    root: str
    names: np.ndarray
    ends: np.ndarray
    states: np.ndarray
    side: int
    mean: tuple[float, ...] = ()
    deviation: tuple[float, ...] = ()
    notes: Notes = field(default_factory=Notes, compare=False)
    seen: np.ndarray = field(init=False, compare=False, repr=False)  # uint8 [N]

    @classmethod
    def of(
        cls, root: str, names: Sequence[str], states: np.ndarray, side: int, notes: Notes
    ) -> FileImages:
        data = np.frombuffer(packed(names), np.uint8)
        return cls(root, data, np.flatnonzero(data == 0), states, side, notes=notes)

    def __post_init__(self) -> None:
        object.__setattr__(self, "seen", np.zeros(len(self.ends), np.uint8))

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return len(self.ends), 3, self.side, self.side

    @property
    def ndim(self) -> int:
        return 4

    @property
    def dtype(self) -> torch.dtype:
        return torch.float32

    def __len__(self) -> int:
        return len(self.ends)

    def normalized(self, mean: tuple[float, ...], deviation: tuple[float, ...]) -> FileImages:
        return replace(self, mean=mean, deviation=deviation)

    def name(self, at: int) -> str:
        begin = int(self.ends[at - 1]) + 1 if at else 0
        return os.fsdecode(self.names[begin : int(self.ends[at])].tobytes())

    def update(self, digest: hashlib._Hash) -> None:
        """Add to a checksum what distinguishes these images from others."""
        digest.update(f"{self.side} {self.mean} {self.deviation}\n".encode())
        for array in (self.names, self.states):
            digest.update(np.ascontiguousarray(array))

    # ---- decoding -------------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Tensor:
        places = self._places(index)
        images = self._numbers(next(self._decoded([np.atleast_1d(places)])))
        return images if np.ndim(places) else images[0]

    def split(self, size: int) -> Iterator[Tensor]:
        """Batches of `size`, in order."""
        return self.ahead(slice(start, start + size) for start in range(0, len(self), size))

    def ahead(self, indices: Iterable[Any]) -> Iterator[Tensor]:
        """`images[index]` of each, decoded while the one before is used."""
        for images in self._decoded(np.atleast_1d(self._places(index)) for index in indices):
            yield self._numbers(images)

    def bytes_of(self, index: Any) -> np.ndarray:
        """uint8 [n, 3, side, side]."""
        return next(self._decoded([np.atleast_1d(self._places(index))]))

    def _places(self, index: Any) -> np.ndarray:
        if isinstance(index, slice):
            return np.arange(len(self))[index]
        chosen = index.numpy() if torch.is_tensor(index) else np.asarray(index)
        if chosen.dtype == bool:
            return np.flatnonzero(chosen)
        return np.asarray(np.where(chosen < 0, chosen + len(self), chosen))

    def _numbers(self, images: np.ndarray) -> Tensor:
        numbers = scale(torch.from_numpy(images))
        if self.mean:
            normalize(numbers, self.mean, self.deviation)
        return numbers

    def _decoded(self, batches: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
        """The bytes of each batch; the next are under way while one is used."""
        pool = ThreadPoolExecutor(min(THREADS, os.cpu_count() or 1))
        waiting: deque[tuple[np.ndarray, np.ndarray, list[Future[None]]]] = deque()
        try:
            for places in batches:
                images: np.ndarray = np.empty((len(places), 3, self.side, self.side), np.uint8)
                parts = [
                    pool.submit(self._fill, images, places, start)
                    for start in range(0, len(places), PART)
                ]
                waiting.append((places, images, parts))
                if len(waiting) > AHEAD:
                    yield self._ended(*waiting.popleft())
            while waiting:
                yield self._ended(*waiting.popleft())
        finally:  # after an error or Ctrl-C no further file is begun
            pool.shutdown(cancel_futures=True)

    def _fill(self, images: np.ndarray, places: np.ndarray, start: int) -> None:
        for i, at in enumerate(places[start : start + PART].tolist(), start):
            images[i] = self._one(at)

    def _one(self, at: int) -> np.ndarray | int:
        name = self.name(at)
        path = os.path.join(self.root, name)
        try:
            state = state_of(os.stat(path))
        except OSError:
            state = NOT_THERE
        if state != tuple(self.states[at].tolist()):
            raise DataFailed(
                f"image {quoted(path)} is {'gone' if state == NOT_THERE else 'another'} since the "
                "folder was listed: put it back, or begin a new study (--fresh)"
            )
        try:
            return decode(path, self.side)
        except Unreadable as error:
            self.notes.add(name, error.why)
            self.seen[at] = BAD
            return GREY

    def _ended(
        self, places: np.ndarray, images: np.ndarray, parts: Sequence[Future[None]]
    ) -> np.ndarray:
        for part in parts:
            part.result()
        self.seen[places] |= SEEN
        count, bad = np.count_nonzero(self.seen), np.flatnonzero(self.seen & BAD)
        if len(bad) > max(1, count / MANY) and count >= min(ENOUGH, len(self)):
            name = self.name(int(bad[0]))
            path = quoted(os.path.join(self.root, name))
            raise DataFailed(
                f"image {path} cannot be read: {self.notes.found[name]}; {len(bad) - 1} other "
                f"images of {count} cannot be, either"
            )
        return images


def words(unreadable: dict[str, str]) -> str:
    """A line about files that cannot be read; "" where there are none."""
    if not unreadable:
        return ""
    count, name = len(unreadable), min(unreadable)
    files = "1 image file is grey: it" if count == 1 else f"{count} image files are grey: they"
    first = f"'{printable(name)}': {unreadable[name]}"
    return f"{files} cannot be read ({'' if count == 1 else 'such as '}{first})"
