"""Errors of the user: one message, never a traceback.

The C core raises ``CanvasError`` (a ValueError) for bad input and ``NoSolution`` if there is no
solution.  The Python code raises the same two, so that one ``except canvas.CanvasError`` catches
all of them.  The core raises ``MemoryError`` if it runs out of memory.  The command line prints
the message on standard error and exits with 2, or with 1 for NoSolution.
"""

from __future__ import annotations

from ._core import Error as CanvasError
from ._core import NoSolution

__all__ = ["CanvasError", "NoSolution", "missing", "one_line"]

LIBRARIES = {"torch": "PyTorch", "numpy": "NumPy"}
PLAIN = (ValueError, RuntimeError, CanvasError, NoSolution)


def one_line(error: BaseException, limit: int = 200) -> str:
    """An exception as one line of at most `limit` characters: its type and the first line of its
    message.  Types that add nothing to a message are left out.
    """
    text = str(error).strip().splitlines()
    first = text[0].strip() if text else ""
    line = f"{type(error).__name__}: {first}" if first else type(error).__name__
    if first and type(error) in PLAIN:
        line = first
    return line if len(line) <= limit else line[: limit - 3] + "..."


def missing(who: str, error: ModuleNotFoundError) -> str:
    """The message if `who` needs a library that is not installed; "" for any other module."""
    library = LIBRARIES.get((error.name or "").partition(".")[0])
    if library is None:
        return ""
    return f'{who} needs {library}, not installed here: pip install "canvas-kas[torch]"'
