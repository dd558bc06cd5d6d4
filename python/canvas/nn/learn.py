"""Kernels that draws learn from: files, packs and texts, as one text for the core."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from .. import _testing
from ..arguments import shown
from ..errors import CanvasError
from .pack import KernelPack

Learn = str | os.PathLike[str] | KernelPack


def kernels_of(learn: Learn | Sequence[Learn] | None) -> list[str]:
    """The text of all kernels to learn from, checked; [] of None."""
    if learn is None:
        return []
    several = learn if isinstance(learn, Sequence) and not isinstance(learn, str) else [learn]
    texts = []
    for one in several:
        if isinstance(one, KernelPack):
            texts.append(one.kernel)
            continue
        if not isinstance(one, (str, os.PathLike)):
            raise CanvasError(f"learn takes files, packs and texts of kernels, not {shown(one)}")
        is_text = isinstance(one, str) and "\n" in one
        texts.append(str(one) if is_text else _read_kernels(Path(one)))
        try:
            _testing.draw_is_free(1, 0, f"draws=learned learn={texts[-1]}")
        except CanvasError as error:
            raise CanvasError(f"learn: {'a text' if is_text else one}: {error}") from None
    return ["\n".join(texts)]


def _read_kernels(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise CanvasError(f"learn: '{file}' cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise CanvasError(f"learn: '{file}' is no text of kernels") from None
