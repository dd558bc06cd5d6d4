"""What others write to a terminal on which a table stands: whole lines, one after the other."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from typing import Any


class Lines(io.TextIOBase):
    """In the place of `stream`: every line that is complete goes to `show`, and `finish` shows
    what has no end.  Threads may write at the same time: each one's text is a line of its own.
    """

    def __init__(self, stream: Any, show: Callable[[str], None]) -> None:
        self.rich_proxied_file = stream  # where rich itself writes
        self.show = show
        self.begun: dict[int, str] = {}  # thread -> its line so far
        self.lock = threading.Lock()

    def write(self, text: str) -> int:
        me = threading.get_ident()
        with self.lock:
            *whole, rest = (self.begun.pop(me, "") + text).split("\n")
            if rest:
                self.begun[me] = rest
        for line in whole:
            self.show(line)
        return len(text)

    def finish(self) -> None:
        with self.lock:
            rests, self.begun = list(self.begun.values()), {}
        for rest in rests:
            self.show(rest)

    def isatty(self) -> bool:
        return bool(self.rich_proxied_file.isatty())

    def fileno(self) -> int:
        return int(self.rich_proxied_file.fileno())

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return str(self.rich_proxied_file.encoding)
