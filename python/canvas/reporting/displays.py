"""Which display a search has: a table on a terminal, plain lines, or nothing."""

from __future__ import annotations

import importlib.util
import os
import sys

from ..errors import CanvasError
from ..text import printable
from .progress import Display, Say, Silent, say_to_stderr

WAYS = ("live", "lines", "off")


def make_display(
    way: str, say: Say | None, title: str, limit: float | None, begun: float
) -> Display:
    """The display for `way`, one of WAYS: `say` receives lines, `title`, the seconds since
    `begun` (a moment of time.monotonic()) and their limit head the live table.  What has no
    terminal to live on is lines.
    """
    if way not in WAYS:
        raise CanvasError(f"progress is {', '.join(WAYS)}, not '{printable(way)}'")
    if way == "live" and say is None and can_be_live():
        from .live import LiveDisplay, terminal

        return LiveDisplay(terminal(), title, limit, begun)
    return (Silent if way == "off" else Display)(say or say_to_stderr)


def wanted_way(flag: str | None) -> str:
    """What the flag says, else the environment's CANVAS_PROGRESS, else live."""
    way = flag or os.environ.get("CANVAS_PROGRESS") or "live"
    if way not in WAYS:
        raise CanvasError(f"CANVAS_PROGRESS takes {', '.join(WAYS)}, not '{printable(way)}'")
    return way


def can_be_live() -> bool:
    """Whether standard error is a terminal that can move its cursor, and rich is there."""
    return (
        sys.stderr is not None
        and sys.stderr.isatty()
        and os.environ.get("TERM", "dumb") not in ("dumb", "unknown")
        and importlib.util.find_spec("rich") is not None
    )
