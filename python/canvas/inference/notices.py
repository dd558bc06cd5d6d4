"""Messages to the user, each one line and shown once per process.

They go to the logger "canvas", which writes to standard error unless the program configures it.
"""

from __future__ import annotations

import logging

LOGGER = logging.getLogger("canvas")
_shown: set[str] = set()


def notify(line: str) -> None:
    if line and line not in _shown:
        _shown.add(line)
        LOGGER.warning(line)
