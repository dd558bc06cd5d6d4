"""What the user is told on the way, one line each, once in a process: by the logger "canvas",
which writes to standard error unless a program says otherwise.
"""

from __future__ import annotations

import logging

LOGGER = logging.getLogger("canvas")
_told: set[str] = set()


def tell(line: str) -> None:
    if line and line not in _told:
        _told.add(line)
        LOGGER.warning(line)
