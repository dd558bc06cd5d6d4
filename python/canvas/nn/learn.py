"""Kernels that draws learn from: files, packs and texts, as one text for the core."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import _testing
from ..arguments import shown
from ..errors import CanvasError
from .pack import KernelPack

Learn = str | os.PathLike[str] | KernelPack


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
    if isinstance(one, KernelPack):
        return one.kernel
    if not isinstance(one, (str, os.PathLike)) or not one:
        raise CanvasError(f"learn takes files, packs and texts of kernels, not {shown(one)}")
    if isinstance(one, str) and "\n" in one:
        _check("a text", one)
        return one
    text = _read_kernels(Path(one))
    _check(str(one), text)
    return text


def _check(name: str, text: str) -> None:
    try:
        _testing.draw_is_free(1, 0, f"draws=learned learn=\n{text}")
    except CanvasError as error:
        why = re.sub(r"line (\d+)", lambda line: f"line {int(line[1]) - 1}", str(error), count=1)
        raise CanvasError(f"learn: {name}: {why}") from None


def _read_kernels(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise CanvasError(f"learn: '{file}' cannot be read: {error.strerror}") from None
    except ValueError:  # no UTF-8, or no name of a file
        raise CanvasError(f"learn: {str(file)!r} is no text of kernels") from None
