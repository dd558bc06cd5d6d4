"""Where in the user's program something was written: `gemm.py:12`."""

from __future__ import annotations

import os
import re
import sys
from types import FrameType, TracebackType

from ..errors import CanvasError, one_line

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

_NOWHERE = "unknown place"  # where `python -m` has begun with a file of canvas


def place() -> str:
    """The innermost line that is not of canvas itself."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith((_OURS, "<frozen ")):
        frame = frame.f_back
    return _shown(frame.f_code.co_filename, frame.f_lineno) if frame else _NOWHERE


def mistake(message: str, at: str | None = None) -> CanvasError:
    """What to raise: the user's line and one message."""
    at = at or place()
    return CanvasError(message if at == _NOWHERE else f"{at}: {message}")


_PLACE = re.compile(r"\S+:\d+: ")


def placed(error: CanvasError) -> CanvasError:
    """What to raise again: with the user's line, where it has none yet."""
    text = str(error)
    return CanvasError(text) if _PLACE.match(text) else mistake(text)


def unplaced(error: CanvasError) -> str:
    """The message alone, for another place in a file."""
    return _PLACE.sub("", str(error), count=1) if _PLACE.match(str(error)) else str(error)


def raised(what: str, error: Exception) -> CanvasError:
    """What to raise where code of the user raised `error`: the line that did."""
    trace: TracebackType | None = error.__traceback__
    line = 0
    name = ""
    while trace is not None:
        code = trace.tb_frame.f_code
        if not code.co_filename.startswith(_OURS):
            name, line = code.co_filename, trace.tb_lineno
        trace = trace.tb_next
    return mistake(f"{what} raised {one_line(error)}", _shown(name, line) if name else None)


def _shown(name: str, line: int) -> str:
    """A path as from here, where that is no longer."""
    here = os.getcwd() + os.sep
    return f"{name.removeprefix(here)}:{line}"
