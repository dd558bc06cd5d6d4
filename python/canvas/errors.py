"""What becomes of a user's mistake: one message, never a traceback.

The C core raises ``CanvasError`` (a ValueError) for bad input and ``NoSolution`` where the
answer is "none"; the Python side raises the same two, so that one ``except canvas.CanvasError``
catches all of them.  Where memory is short, the core raises ``MemoryError``.  The command line
prints the message on standard error and exits with 2, or with 1 for NoSolution.
"""

from __future__ import annotations

from ._core import Error as CanvasError
from ._core import NoSolution

__all__ = ["CanvasError", "NoSolution", "missing", "one_line"]

LIBRARIES = {"torch": "PyTorch", "numpy": "NumPy"}


def one_line(error: BaseException, limit: int = 200) -> str:
    """An exception as one line: its type and the first line of its message, cut to `limit`
    characters.
    """
    text = str(error).strip().splitlines()
    first = text[0].strip() if text else ""
    line = f"{type(error).__name__}: {first}" if first else type(error).__name__
    return line if len(line) <= limit else line[: limit - 3] + "..."


def missing(who: str, error: ModuleNotFoundError) -> str:
    """What to say where `who` needs a library that is not installed; "" for any other module."""
    library = LIBRARIES.get((error.name or "").partition(".")[0])
    if library is None:
        return ""
    return f'{who} needs {library}, not installed here: pip install "canvas-kas[torch]"'
