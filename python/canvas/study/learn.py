"""Kernels that draws learn from: files, packs, texts and studies, as one text for the core."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from .. import _core, _testing
from ..arguments import shown
from ..errors import CanvasError
from ..stored_options import FIT, command_of
from .records import Study

PART, MOST = 4, 64  # of a study's kernels the best quarter, at most so many
TEXT_LIMIT = 16 << 20  # bytes, as in the core
LAYER = re.compile(r"^bind \S+ Cin=", re.M)  # a line of a pack's text


class Pack(Protocol):
    """A canvas.KernelPack."""

    @property
    def kernel(self) -> str: ...


Learn = str | os.PathLike[str] | Pack


def kernels_of(learn: Learn | Sequence[Learn] | None) -> list[str]:
    """The text of all kernels to learn from, checked; [] where there are none."""
    if learn is None:
        return []
    is_one = isinstance(learn, (str, bytes, os.PathLike)) or not isinstance(learn, Sequence)
    several: Sequence[Any] = [learn] if is_one else learn  # type: ignore[assignment]
    texts = [_text_of(one) for one in several]
    joined = "\n".join(texts)
    if len(texts) > 1:
        _check("all together", joined)
    return [joined] if texts else []


def _text_of(one: Any) -> str:
    kernel = getattr(one, "kernel", None)
    if isinstance(kernel, str):
        return kernel
    if not isinstance(one, (str, os.PathLike)) or not one:
        raise CanvasError(
            f"learn takes files, studies, packs and texts of kernels, not {shown(one)}"
        )
    if isinstance(one, str) and "\n" in one:
        return _kernels_in("a text", one)
    with _naming(one):
        is_study = Path(one).is_dir()
        text = "" if is_study else _read(Path(one))
    return _kernels_of_study(Path(one)) if is_study else _kernels_in(str(one), text)


def _kernels_in(name: str, text: str) -> str:
    """The kernels of a text, which is theirs or that of a pack."""
    if LAYER.search(text):
        try:
            return _core.print_kernels(text)
        except CanvasError as error:
            raise CanvasError(f"learn: {name}: {error}") from None
    _check(name, text)
    return text


def _check(name: str, text: str) -> None:
    try:
        _testing.draw_is_free(1, 0, f"draws=learned learn=\n{text}")
    except CanvasError as error:
        why = re.sub(r"line (\d+)", lambda line: f"line {int(line[1]) - 1}", str(error), count=1)
        raise CanvasError(f"learn: {name}: {why}") from None


@contextmanager
def _naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """One message where a file cannot be read."""
    try:
        yield
    except CanvasError:
        raise
    except OSError as error:
        name = str(path) if len(str(path)) <= 256 else f"{str(path)[:253]}..."
        raise CanvasError(f"learn: {name!r} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise CanvasError(f"learn: {str(path)!r} is not UTF-8 text") from None
    except ValueError:
        raise CanvasError(f"learn: {str(path)!r} is no name of a file") from None


def _read(file: Path) -> str:
    with file.open("rb") as stream:
        read = stream.read(TEXT_LIMIT + 1)
    if len(read) > TEXT_LIMIT:
        raise CanvasError(f"learn: '{file}' is over the limit of {TEXT_LIMIT >> 20} MiB")
    return read.decode("utf-8-sig").replace("\r\n", "\n")


def _kernels_of_study(folder: Path) -> str:
    """The best quarter of the kernels that a fit has screened, or that a search has trained; those
    that it pruned come last.
    """
    try:
        with Study.read(folder) as study:
            if command_of(study.options()) == FIT:
                ranked = sorted(study.screened(), key=lambda row: (row.error, row.number))
                kernels = [row.kernel for row in ranked]
            else:
                found = study.select("find", ("done", "pruned"))
                found.sort(key=lambda row: (row.status != "done", -row.merit, row.id))
                kernels = list(dict.fromkeys(row.kernel for row in found))
    except CanvasError as error:
        raise CanvasError(f"learn: {error}") from None
    if not kernels:
        raise CanvasError(f"learn: the study in '{folder}' has no kernel yet")
    return "\n".join(kernels[: min(-(-len(kernels) // PART), MOST)])
